"""Approval: the user allows once, for the session, always, or denies."""

from __future__ import annotations

import json
import logging
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.memory.owner_files import owner_file_stem
from hermes.agent.safety.approval import ApprovalRequest, Approvals, ConversationOrigin, Decision
from hermes.agent.safety.permits import Permit, Permits
from hermes.config import ChatMode, Mode, load_config
from hermes.errors import ConfigError
from hermes.state.owner import TERMINAL, Owner, owner_of
from tests.agent.tools.workbench import SESSION, Person, Workbench


def command(
    text: str, bare: str | None = None, tool: str = "terminal", directory: str = "/src/wiki"
) -> ApprovalRequest:
    return ApprovalRequest(
        tool=tool, summary=text, detail=text, risk="normal", subject=text, directory=directory, bare=bare
    )


def refusal(
    approvals: Approvals,
    request: ApprovalRequest,
    person: Person | None,
    session_id: str = "s",
    owner: Owner = TERMINAL,
) -> str | None:
    return approvals.refusal(request, ConversationOrigin(session_id, "cli", owner), person)


@pytest.fixture
def permits(tmp_path: Path) -> Permits:
    """The store of lasting permissions."""
    return Permits(tmp_path)


@pytest.fixture
def approvals(permits: Permits) -> Approvals:
    """Approvals in the mode `ask`."""
    return Approvals("ask", permits)


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
        said = refusal(approvals, command("make"), Person(Decision.DENY))
        assert said is not None
        assert said.startswith("The user has not allowed this. Do not try it again in any form;")

    def test_denial_is_not_remembered(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.DENY))
        assert refusal(approvals, command("make"), Person(Decision.ONCE)) is None

    def test_user_who_cannot_be_asked_means_denied_with_a_hint(self, approvals: Approvals) -> None:
        said = refusal(approvals, command("make"), None)
        assert said is not None
        assert "the user, who cannot be asked" in said
        assert "`approvals.mode: allow`" in said

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
        said = refusal(Approvals("deny", permits), command("make"), person)
        assert said is not None
        assert "approvals.mode is deny" in said
        assert person.asked == []


class TestChats:
    """On chat platforms the operator decides."""

    CHAT = ConversationOrigin("s", "telegram", owner_of("telegram", "1"))

    def test_mode_allow_applies_only_to_the_terminal(self, permits: Permits) -> None:
        approvals = Approvals("allow", permits)
        said = approvals.refusal(command("make"), self.CHAT, None)
        assert said is not None
        assert "the operator, who cannot be asked" in said
        assert "approvals.mode" not in said

    @pytest.mark.parametrize("mode", ["ask", "allow"])
    def test_chat_user_does_not_decide(self, permits: Permits, mode: Mode) -> None:
        stranger = Person(Decision.ONCE)
        assert Approvals(mode, permits).refusal(command("make"), self.CHAT, stranger) is not None
        assert stranger.asked == []

    def test_operator_decides_and_sees_the_origin(self, permits: Permits) -> None:
        asked: list[tuple[str, ConversationOrigin]] = []

        def operator(request: ApprovalRequest, origin: ConversationOrigin) -> Decision:
            asked.append((request.subject, origin))
            return Decision.ONCE

        stranger = Person(Decision.DENY)
        approvals = Approvals("deny", permits, operator=operator)
        assert approvals.refusal(command("make"), self.CHAT, stranger) is None
        assert asked == [("make", self.CHAT)]
        assert stranger.asked == []

    def test_denial_by_the_operator_is_respected(self, permits: Permits) -> None:
        approvals = Approvals("allow", permits, operator=lambda *_: Decision.DENY)
        assert approvals.refusal(command("make"), self.CHAT, Person(Decision.ONCE)) is not None

    def test_operator_is_not_asked_for_the_terminal(self, permits: Permits) -> None:
        approvals = Approvals("ask", permits, operator=lambda *_: Decision.ONCE)
        assert refusal(approvals, command("make"), None) is not None

    def test_single_platform_can_be_denied(self, permits: Permits) -> None:
        approvals = Approvals("ask", permits, chat_modes={"telegram": "deny"}, operator=lambda *_: Decision.ONCE)
        said = approvals.refusal(command("make"), self.CHAT, None)
        assert said is not None
        assert "approvals.sources.telegram is deny" in said
        assert (
            approvals.refusal(command("make"), ConversationOrigin("s", "slack", owner_of("slack", "1")), None) is None
        )

    def test_platform_names_ignore_case(self, permits: Permits) -> None:
        modes: dict[str, ChatMode] = {"Telegram": "deny", "telegram": "ask"}
        approvals = Approvals("ask", permits, chat_modes=modes, operator=lambda *_: Decision.ONCE)
        assert approvals.refusal(command("make"), self.CHAT, None) is not None

    def test_permission_of_the_terminal_does_not_apply_in_a_chat(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.ALWAYS), session_id="terminal")
        assert approvals.refusal(command("make"), self.CHAT, None) is not None
        assert approvals.refusal(command("make"), ConversationOrigin("s", "telegram", TERMINAL), None) is not None

    def test_always_without_an_owner_is_not_stored_for_the_terminal(self, permits: Permits) -> None:
        approvals = Approvals("ask", permits, operator=lambda *_: Decision.ALWAYS)
        assert approvals.refusal(command("make"), ConversationOrigin("s", "telegram", TERMINAL), None) is None
        assert permits.of(TERMINAL) == []

    @pytest.mark.parametrize("source", ["telegram", "default", "CLI", "terminal", ""])
    def test_every_other_source_than_the_terminal_is_a_chat(self, permits: Permits, source: str) -> None:
        assert (
            Approvals("allow", permits).refusal(
                command("make"), ConversationOrigin("s", source, owner_of("x", "1")), None
            )
            is not None
        )

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("approvals: {sources: {telegram: allow}}", "`allow` works only in the terminal"),
            ("approvals: {sources: {cli: deny}}", "use approvals.mode for the terminal"),
            ("approvals: {sources: {' CLI ': deny}}", "use approvals.mode for the terminal"),
            ("approvals: {sources: {tui: ask}}", "use approvals.mode for the terminal"),
        ],
    )
    def test_invalid_chat_modes_are_errors(self, tmp_path: Path, permits: Permits, text: str, said: str) -> None:
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(ConfigError, match=said):
            Approvals("ask", permits, chat_modes=load_config(tmp_path, environ={}).approvals.sources)

    def test_tool_in_a_chat_asks_the_operator(self, bench: Workbench, tmp_path: Path) -> None:
        bench.change(
            source="telegram", owner=owner_of("telegram", "1"), approvals=Approvals("allow", Permits(tmp_path))
        )
        bench.refused("terminal", command="touch here")
        assert bench.person.asked == []
        assert not (bench.work / "here").exists()


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


class TestFile:
    def file(self, home: Path, owner: Owner = TERMINAL) -> Path:
        return home / "approvals" / f"{owner_file_stem(owner)}.json"

    def test_permission_file_is_private_and_readable(self, permits: Permits, tmp_path: Path) -> None:
        permits.add(TERMINAL, Permit("terminal", "make test", "/src/wiki", with_options=True))
        permits.add(TERMINAL, Permit("read_file", "/etc/hosts"))
        file = self.file(tmp_path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert json.loads(file.read_text()) == {
            "version": 2,
            "allowed": [
                {"tool": "terminal", "text": "make test", "directory": "/src/wiki", "covers": "options"},
                {"tool": "read_file", "text": "/etc/hosts", "covers": "exact"},
            ],
        }

    def test_permission_is_not_stored_twice(self, permits: Permits) -> None:
        for _ in range(2):
            permits.add(TERMINAL, Permit("terminal", "make"))
        assert permits.of(TERMINAL) == [Permit("terminal", "make")]

    def test_owners_do_not_share_permissions(self, permits: Permits) -> None:
        permits.add(owner_of("telegram", "1"), Permit("terminal", "make"))
        assert permits.of(owner_of("telegram", "2")) == []
        assert permits.of(TERMINAL) == []

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            '{"version": 3, "allowed": []}',
            '{"version": 2}',
            '{"version": 2, "allowed": [{"tool": "terminal", "text": "", "covers": "options"}]}',
            '{"version": 2, "allowed": [{"tool": "terminal", "text": "x", "covers": "prefix"}]}',
            '{"version": 2, "allowed": [{"tool": "terminal", "text": 7, "covers": "exact"}]}',
            '{"version": 2, "allowed": [{"tool": "terminal", "text": "x", "directory": "", "covers": "exact"}]}',
            "[" * 100_000,
            "\udcff",
        ],
    )
    def test_invalid_permission_file_allows_nothing_and_stays(
        self, permits: Permits, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = self.file(tmp_path)
        file.parent.mkdir()
        file.write_text(text, errors="surrogateescape")
        with caplog.at_level(logging.WARNING):
            assert permits.of(TERMINAL) == []
        assert "is not a list of permissions" in caplog.text
        with pytest.raises(ConfigError, match="is not a list of permissions"):
            permits.add(TERMINAL, Permit("terminal", "make"))
        assert file.read_text(errors="surrogateescape") == text

    def test_command_permission_without_a_directory_never_applies(self, permits: Permits, approvals: Approvals) -> None:
        permits.add(TERMINAL, Permit("terminal", "make"))
        assert refusal(approvals, command("make"), Person(Decision.DENY)) is not None

    OLD = '{"version": 1, "allowed": [{"tool": "terminal", "text": "make", "covers": "prefix"}]}'

    def test_permission_file_of_an_earlier_version_is_ignored_with_a_note(
        self, approvals: Approvals, tmp_path: Path
    ) -> None:
        file = self.file(tmp_path)
        file.parent.mkdir()
        file.write_text(self.OLD)
        person = Person(Decision.ONCE)
        assert refusal(approvals, command("make", "make"), person) is None
        (request,) = person.asked
        assert request.note == (
            f"The permissions in {file} are ignored: an earlier version wrote the file, without the directories in"
            " which they apply."
        )
        said = refusal(approvals, command("make", "make"), None)
        assert said is not None
        assert said.endswith(request.note)
        assert file.read_text() == self.OLD

    def test_permission_file_of_an_earlier_version_is_kept(self, permits: Permits, tmp_path: Path) -> None:
        file = self.file(tmp_path)
        file.parent.mkdir()
        for name in ("terminal.version-1.json", "terminal.version-1-2.json"):
            file.write_text(self.OLD)
            permits.add(TERMINAL, Permit("terminal", "make", "/src/wiki"))
            assert (file.parent / name).read_text() == self.OLD
            assert permits.of(TERMINAL) == [Permit("terminal", "make", "/src/wiki")]
            assert permits.note(TERMINAL) == ""

    def test_permission_that_cannot_be_stored_lasts_for_the_session(
        self, approvals: Approvals, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "approvals").write_text("a file in the way")
        with caplog.at_level(logging.WARNING):
            assert refusal(approvals, command("make"), Person(Decision.ALWAYS)) is None
        assert "a permission holds for this session only" in caplog.text
        assert refusal(approvals, command("make"), Person(Decision.DENY)) is None


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
        assert command.detail == f"pytest --version\n\nin {shown}"
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
