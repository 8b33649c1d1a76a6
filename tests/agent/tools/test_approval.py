"""Approval: the user allows once, for the session, always, or denies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.safety.approval import Approvals, Decision
from hermes.agent.safety.paths import ResolvedPath, resolve_path
from hermes.agent.safety.permits import Permits
from hermes.agent.tools import context
from hermes.config import Mode
from tests.agent.tools.approving import command, refusal
from tests.agent.tools.workbench import SESSION, Person, Workbench


class TestDecisions:
    def test_once_allows_only_one_time(self, approvals: Approvals) -> None:
        person = Person(Decision.ONCE)
        assert refusal(approvals, command("make"), person) is None
        assert refusal(approvals, command("make"), person) is None
        assert len(person.asked) == 2

    def test_session_permission_lasts_for_the_session(self, approvals: Approvals) -> None:
        person = Person(Decision.SESSION)
        assert refusal(approvals, command("make"), person) is None
        person.decision = Decision.DENY
        assert refusal(approvals, command("make"), person) is None
        assert refusal(approvals, command("make"), person, session_id="another") is not None

    def test_permission_covers_only_the_identical_command(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.SESSION))
        for other in ["make install", "make ", "Make"]:
            assert refusal(approvals, command(other), Person(Decision.DENY)) is not None
        assert refusal(approvals, command("make", tool="read_file"), Person(Decision.DENY)) is not None

    def test_always_permission_survives_a_restart(self, approvals: Approvals, tmp_path: Path) -> None:
        refusal(approvals, command("make"), Person(Decision.ALWAYS))
        other = Person(Decision.DENY)
        assert refusal(Approvals("ask", Permits(tmp_path)), command("make"), other, session_id="new") is None
        assert other.asked == []

    def test_denial_tells_the_model_not_to_try_again(self, approvals: Approvals) -> None:
        reason = refusal(approvals, command("make"), Person(Decision.DENY))
        assert reason is not None
        assert reason.startswith("The user has not allowed this. Do not try it again in any form;")

    def test_denial_is_not_remembered(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.DENY))
        assert refusal(approvals, command("make"), Person(Decision.ONCE)) is None

    def test_user_who_cannot_be_asked_means_denied_with_a_hint(self, approvals: Approvals) -> None:
        reason = refusal(approvals, command("make"), None)
        assert reason is not None
        assert "the user, who cannot be asked" in reason
        assert "`approvals.mode: allow`" in reason

    def test_permitted_action_runs_if_the_user_cannot_be_asked(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.ALWAYS))
        assert refusal(approvals, command("make"), None, session_id="script") is None


class TestModes:
    def test_mode_allow_never_asks(self, permits: Permits) -> None:
        person = Person(Decision.DENY)
        assert refusal(Approvals("allow", permits), command("make"), person) is None
        assert person.asked == []

    def test_mode_deny_never_asks_and_allows_nothing(self, permits: Permits, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.ALWAYS))
        person = Person(Decision.ONCE)
        reason = refusal(Approvals("deny", permits), command("make"), person)
        assert reason is not None
        assert "approvals.mode is deny" in reason
        assert person.asked == []


class TestCover:
    """The coverage of a lasting permission."""

    def test_permission_applies_in_its_directory_only(self, approvals: Approvals) -> None:
        refusal(approvals, command("make test", "make test"), Person(Decision.ALWAYS))
        elsewhere = command("make test", "make test", directory="/src/other")
        assert refusal(approvals, elsewhere, Person(Decision.DENY)) is not None
        assert refusal(approvals, command("make test", "make test"), Person(Decision.DENY), session_id="new") is None

    def test_permission_does_not_apply_in_subdirectories(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.SESSION))
        assert refusal(approvals, command("make", directory="/src/wiki/sub"), Person(Decision.DENY)) is not None

    def test_permission_covers_other_harmless_options(self, approvals: Approvals) -> None:
        refusal(approvals, command("make test", "make test"), Person(Decision.SESSION))
        assert refusal(approvals, command("make -k test", "make test"), Person(Decision.DENY)) is None

    def test_dangerous_command_is_asked_despite_a_permission(self, approvals: Approvals) -> None:
        refusal(approvals, command("make clean", "make clean"), Person(Decision.SESSION))
        dangerous = replace(command("make -k clean", "make clean"), risk="high")
        assert refusal(approvals, dangerous, Person(Decision.DENY)) is not None

    def test_dangerous_command_can_only_be_permitted_exactly(self, approvals: Approvals) -> None:
        dangerous = replace(command("make -k clean", "make clean"), risk="high")
        assert str(dangerous.permit) == "exactly this in /src/wiki"
        refusal(approvals, dangerous, Person(Decision.SESSION))
        assert refusal(approvals, dangerous, Person(Decision.DENY)) is None
        assert refusal(approvals, command("make clean", "make clean"), Person(Decision.DENY)) is not None

    def test_permission_can_be_described(self) -> None:
        permit = command("make -k test", "make test").permit
        assert str(permit) == "`make test` in /src/wiki, also with -k, -s, -jN"

    @pytest.mark.parametrize(
        "attack",
        [
            "make test SHELL=./x",
            "make test -f x",
            "make -C .. test",
            "make test --eval=x",
            "git fetch --upload-pack=./x",
            "go test -exec ./x",
            "go test -toolexec=./x",
            "npm test --script-shell=./x",
            "tox -c x",
            "pytest -p x",
            "pytest -c x",
            "pytest --rootdir=/",
            "cargo build --config x",
        ],
    )
    def test_option_that_runs_programs_needs_approval(self, bench: Workbench, attack: str) -> None:
        words = attack.split()
        for count in range(1, len(words)):
            bench.person.decision = Decision.ALWAYS
            bench.call("terminal", command=" ".join(words[:count]))
        bench.person.decision = Decision.DENY
        assert "has not allowed this" in bench.refused("terminal", command=attack)

    def test_same_command_in_another_directory_needs_approval(self, bench: Workbench) -> None:
        (bench.work / "sub").mkdir()
        bench.person.decision = Decision.ALWAYS
        bench.call("terminal", command="touch here")
        bench.person.decision = Decision.DENY
        bench.refused("terminal", command="touch here", cwd="sub")
        assert not (bench.work / "sub" / "here").exists()

    def test_link_to_the_directory_counts_as_the_directory(self, bench: Workbench) -> None:
        (bench.work / "sub").mkdir()
        (bench.work / "link").symlink_to("sub")
        bench.person.decision = Decision.SESSION
        bench.call("terminal", command="touch here", cwd="sub")
        bench.person.decision = Decision.DENY
        bench.call("terminal", command="touch here", cwd=str(bench.work / "link"))
        assert len(bench.person.asked) == 1


class TestSessions:
    def test_continued_session_keeps_its_permissions(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.SESSION), session_id="parent")
        approvals.move("parent", "child")
        assert refusal(approvals, command("make"), Person(Decision.DENY), session_id="child") is None
        assert refusal(approvals, command("make"), Person(Decision.DENY), session_id="parent") is not None

    def test_forgotten_session_needs_approval_again(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.SESSION))
        approvals.forget("s")
        assert refusal(approvals, command("make"), Person(Decision.DENY)) is not None


class TestTerminal:
    def test_user_sees_the_whole_command_and_its_directory(self, bench: Workbench) -> None:
        bench.call("terminal", command="echo one\necho two")
        (request,) = bench.person.asked
        assert request.summary == "run echo one"
        assert request.detail == f"echo one\necho two\n\nin {bench.work}"
        assert request.risk == "normal"

    def test_nothing_in_a_command_can_hide(self, bench: Workbench) -> None:
        bench.person.decision = Decision.DENY
        bench.refused("terminal", command="echo \x1b[2Jа" + "b" * 200)
        (request,) = bench.person.asked
        assert request.detail.startswith("echo \\x1b[2J\\u0430" + "b" * 200)
        assert len(request.summary) < 110
        assert request.risk == "high"

    def test_names_of_files_cannot_imitate_lines_of_the_question(self, bench: Workbench, tmp_path: Path) -> None:
        place = tmp_path / "x\n\nin \u05d0\n[s] and [a] would allow nothing."
        place.mkdir()
        (place / "file").touch()
        shown = str(tmp_path) + r"/x\n\nin \u05d0\n[s] and [a] would allow nothing."
        bench.call("terminal", command="pytest --version", cwd=str(place))
        bench.call("read_file", path=str(place / "file"))
        command, file = bench.person.asked
        assert command.detail.startswith(f"pytest --version\n\nin {shown}\n\nCheck this before you allow it:\n- ")
        assert str(command.permit) == f"exactly this in {shown}"
        assert file.detail == f"{shown}/file"

    def test_denied_command_does_not_run(self, bench: Workbench) -> None:
        bench.person.decision = Decision.DENY
        assert "The user has not allowed this." in bench.refused("terminal", command="touch here")
        assert not (bench.work / "here").exists()

    @pytest.mark.parametrize("mode", ["ask", "deny"])
    def test_read_only_command_needs_no_approval(self, bench: Workbench, mode: Mode, tmp_path: Path) -> None:
        bench.change(approve=None, approvals=Approvals(mode, Permits(tmp_path)))
        (bench.work / "notes.txt").write_text("hello\n")
        assert bench.call("terminal", command="cat notes.txt") == "hello\n[exit code 0]"

    def test_reading_through_a_link_to_another_place_needs_approval(self, bench: Workbench) -> None:
        (bench.work / "link").symlink_to("/etc/passwd")
        bench.change(approve=None)
        assert "cannot be asked" in bench.refused("terminal", command="cat link")

    def test_reading_a_protected_place_needs_approval(self, bench: Workbench) -> None:
        (bench.work / ".env").write_text("KEY=1")
        bench.call("terminal", command="cat .env")
        assert [request.risk for request in bench.person.asked] == ["high"]

    @pytest.mark.parametrize("name", ["notes", "id_rsa", "kubeconfig"])
    def test_plain_word_that_names_a_protected_file_is_dangerous(self, bench: Workbench, name: str) -> None:
        (bench.work / "secrets.json").write_text("{}")
        if name == "notes":
            (bench.work / name).symlink_to("secrets.json")
        bench.call("terminal", command=f"strings {name}")
        assert [request.risk for request in bench.person.asked] == ["high"]

    def test_words_of_a_long_command_that_are_no_paths_are_not_looked_up(
        self, bench: Workbench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        resolved: list[str] = []

        def note(text: str, cwd: Path, user_home: Path) -> ResolvedPath:
            resolved.append(text)
            return resolve_path(text, cwd, user_home)

        monkeypatch.setattr(context, "resolve_path", note)
        text = " ".join(f"word{number} name.{number}" for number in range(2_000))
        bench.call("terminal", command=f"cat > text <<'END'\n{text}\nEND")
        assert [request.risk for request in bench.person.asked] == ["normal"]
        assert len(resolved) < 20

    def test_every_command_outside_the_directory_needs_approval(self, bench: Workbench, tmp_path: Path) -> None:
        bench.call("terminal", command="ls", cwd=str(tmp_path))
        assert [request.risk for request in bench.person.asked] == ["high"]
        bench.call("terminal", command="ls")
        assert len(bench.person.asked) == 2

    def test_every_command_in_a_protected_place_needs_approval(self, bench: Workbench) -> None:
        (bench.work / "home" / ".ssh").mkdir(parents=True)
        bench.change(environ={**bench.context.environ, "HOME": str(bench.work / "home")})
        bench.call("terminal", command="ls", cwd="home/.ssh")
        assert [request.risk for request in bench.person.asked] == ["high"]

    def test_permission_does_not_apply_outside_the_directory(self, bench: Workbench, tmp_path: Path) -> None:
        bench.person.decision = Decision.SESSION
        bench.call("terminal", command="touch here")
        bench.person.decision = Decision.DENY
        assert "has not allowed this" in bench.refused("terminal", command="touch here", cwd=str(tmp_path))

    def test_command_permitted_for_the_session_runs_again(self, bench: Workbench) -> None:
        bench.person.decision = Decision.SESSION
        for _ in range(2):
            bench.call("terminal", command="touch here")
        assert [request.subject for request in bench.person.asked] == ["touch here"]
        bench.context.approvals.forget(SESSION)
