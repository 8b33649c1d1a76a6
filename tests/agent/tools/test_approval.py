"""A person decides: once, for the session, for good, or not at all."""

from __future__ import annotations

import json
import logging
import stat
from pathlib import Path

import pytest

from hermes.agent.owners import owner_file_stem
from hermes.agent.safety.approval import Approvals, Decision, Mode, Request
from hermes.agent.safety.permits import Permit, Permits
from hermes.errors import ConfigError
from tests.agent.tools.workbench import SESSION, Person, Workbench


def command(text: str, prefix: str | None = None, tool: str = "terminal") -> Request:
    return Request(tool=tool, summary=text, detail=text, risk="normal", subject=text, prefix=prefix)


def refusal(
    approvals: Approvals, request: Request, person: Person | None, session_id: str = "s", owner: str | None = None
) -> str | None:
    return approvals.refusal(request, session_id=session_id, owner=owner, approve=person)


@pytest.fixture
def permits(tmp_path: Path) -> Permits:
    """Where permissions are kept."""
    return Permits(tmp_path)


@pytest.fixture
def approvals(permits: Permits) -> Approvals:
    """Approvals that ask."""
    return Approvals("ask", permits)


class TestDecisions:
    def test_once_is_asked_again(self, approvals: Approvals) -> None:
        person = Person(Decision.ONCE)
        assert refusal(approvals, command("make"), person) is None
        assert refusal(approvals, command("make"), person) is None
        assert len(person.asked) == 2

    def test_the_session_is_asked_once(self, approvals: Approvals) -> None:
        person = Person(Decision.SESSION)
        assert refusal(approvals, command("make"), person) is None
        person.decision = Decision.DENY
        assert refusal(approvals, command("make"), person) is None
        assert refusal(approvals, command("make"), person, session_id="another") is not None

    def test_a_permission_holds_for_the_very_same_only(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.SESSION))
        for other in ["make install", "make ", "Make"]:
            assert refusal(approvals, command(other), Person(Decision.DENY)) is not None
        assert refusal(approvals, command("make", tool="read_file"), Person(Decision.DENY)) is not None

    def test_always_holds_in_a_new_program(self, approvals: Approvals, tmp_path: Path) -> None:
        refusal(approvals, command("make"), Person(Decision.ALWAYS))
        nobody = Person(Decision.DENY)
        assert refusal(Approvals("ask", Permits(tmp_path)), command("make"), nobody, session_id="new") is None
        assert nobody.asked == []

    def test_denied_tells_the_model_not_to_try_again(self, approvals: Approvals) -> None:
        said = refusal(approvals, command("make"), Person(Decision.DENY))
        assert said is not None
        assert said.startswith("The person has not allowed this. Do not try it again, not in another form either;")

    def test_denied_is_not_remembered(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.DENY))
        assert refusal(approvals, command("make"), Person(Decision.ONCE)) is None

    def test_nobody_to_ask_is_denied_and_names_the_setting(self, approvals: Approvals) -> None:
        said = refusal(approvals, command("make"), None)
        assert said is not None
        assert "there is nobody to ask" in said
        assert "`approvals.mode: allow`" in said

    def test_with_nobody_to_ask_what_is_permitted_is_done(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.ALWAYS))
        assert refusal(approvals, command("make"), None, session_id="script") is None


class TestModes:
    def test_allow_asks_nobody(self, permits: Permits) -> None:
        person = Person(Decision.DENY)
        assert refusal(Approvals("allow", permits), command("make"), person) is None
        assert person.asked == []

    def test_deny_asks_nobody_and_permits_nothing(self, permits: Permits, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.ALWAYS))
        person = Person(Decision.ONCE)
        said = refusal(Approvals("deny", permits), command("make"), person)
        assert said is not None
        assert "approvals.mode is deny" in said
        assert person.asked == []


class TestPrefixes:
    def test_commands_of_the_same_kind_are_covered(self, approvals: Approvals) -> None:
        refusal(approvals, command("npm test", "npm test"), Person(Decision.SESSION))
        assert refusal(approvals, command("npm test --watch", "npm test"), Person(Decision.DENY)) is None

    @pytest.mark.parametrize("other", ["npm test; rm x", "npm test | sh", "npm install", "npm test\nrm x"])
    def test_others_are_not(self, approvals: Approvals, other: str) -> None:
        refusal(approvals, command("npm test", "npm test"), Person(Decision.SESSION))
        assert refusal(approvals, command(other), Person(Decision.DENY)) is not None

    def test_a_dangerous_one_is_asked_about_all_the_same(self, approvals: Approvals) -> None:
        refusal(approvals, command("git push", "git push"), Person(Decision.SESSION))
        forced = Request("terminal", "", "", risk="high", subject="git push --force", prefix="git push")
        assert refusal(approvals, forced, Person(Decision.DENY)) is not None

    def test_a_dangerous_one_can_be_permitted_as_it_is_only(self, approvals: Approvals) -> None:
        forced = Request("terminal", "", "", risk="high", subject="git push --force", prefix="git push")
        assert str(forced.permit) == "exactly this"
        refusal(approvals, forced, Person(Decision.SESSION))
        assert refusal(approvals, forced, Person(Decision.DENY)) is None
        assert refusal(approvals, command("git push", "git push"), Person(Decision.DENY)) is not None

    def test_what_would_be_permitted_can_be_said(self) -> None:
        assert str(command("npm test -w", "npm test").permit) == "everything that begins with `npm test`"


class TestSessions:
    def test_the_session_that_continues_another_keeps_its_permissions(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.SESSION), session_id="parent")
        approvals.move("parent", "child")
        assert refusal(approvals, command("make"), Person(Decision.DENY), session_id="child") is None
        assert refusal(approvals, command("make"), Person(Decision.DENY), session_id="parent") is not None

    def test_what_is_forgotten_is_asked_again(self, approvals: Approvals) -> None:
        refusal(approvals, command("make"), Person(Decision.SESSION))
        approvals.forget("s")
        assert refusal(approvals, command("make"), Person(Decision.DENY)) is not None


class TestFile:
    def file(self, home: Path, owner: str | None = None) -> Path:
        return home / "approvals" / f"{owner_file_stem(owner)}.json"

    def test_it_is_private_and_readable_for_people(self, permits: Permits, tmp_path: Path) -> None:
        permits.add(None, Permit("terminal", "npm test", is_prefix=True))
        permits.add(None, Permit("read_file", "/etc/hosts"))
        file = self.file(tmp_path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert json.loads(file.read_text()) == {
            "version": 1,
            "allowed": [
                {"tool": "terminal", "text": "npm test", "covers": "prefix"},
                {"tool": "read_file", "text": "/etc/hosts", "covers": "exact"},
            ],
        }

    def test_nothing_is_kept_twice(self, permits: Permits) -> None:
        for _ in range(2):
            permits.add(None, Permit("terminal", "make"))
        assert permits.of(None) == [Permit("terminal", "make")]

    def test_owners_do_not_share_permissions(self, permits: Permits) -> None:
        permits.add("telegram:1", Permit("terminal", "make"))
        assert permits.of("telegram:2") == []
        assert permits.of(None) == []

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            '{"version": 2, "allowed": []}',
            '{"version": 1}',
            '{"version": 1, "allowed": [{"tool": "terminal", "text": "", "covers": "prefix"}]}',
            '{"version": 1, "allowed": [{"tool": "terminal", "text": "x", "covers": "everything"}]}',
            '{"version": 1, "allowed": [{"tool": "terminal", "text": 7, "covers": "exact"}]}',
            "[" * 100_000,
            "\udcff",
        ],
    )
    def test_one_that_cannot_be_understood_permits_nothing_and_stays(
        self, permits: Permits, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = self.file(tmp_path)
        file.parent.mkdir()
        file.write_text(text, errors="surrogateescape")
        with caplog.at_level(logging.WARNING):
            assert permits.of(None) == []
        assert "is not a list of permissions" in caplog.text
        with pytest.raises(ConfigError, match="is not a list of permissions"):
            permits.add(None, Permit("terminal", "make"))
        assert file.read_text(errors="surrogateescape") == text

    def test_what_cannot_be_kept_holds_for_the_session(
        self, approvals: Approvals, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "approvals").write_text("a file in the way")
        with caplog.at_level(logging.WARNING):
            assert refusal(approvals, command("make"), Person(Decision.ALWAYS)) is None
        assert "a permission holds for this session only" in caplog.text
        assert refusal(approvals, command("make"), Person(Decision.DENY)) is None


class TestTerminal:
    def test_the_person_sees_the_whole_command_and_where_it_runs(self, bench: Workbench) -> None:
        bench.call("terminal", command="echo one\necho two")
        (request,) = bench.person.asked
        assert request.summary == "run echo one"
        assert request.detail == f"echo one\necho two\n\nin {bench.work}"
        assert request.risk == "normal"

    def test_nothing_in_it_can_hide(self, bench: Workbench) -> None:
        bench.person.decision = Decision.DENY
        bench.refused("terminal", command="echo \x1b[2Jа" + "b" * 200)
        (request,) = bench.person.asked
        assert request.detail.startswith("echo \\x1b[2J\\u0430" + "b" * 200)
        assert len(request.summary) < 110
        assert request.risk == "high"

    def test_a_denied_command_does_not_run(self, bench: Workbench) -> None:
        bench.person.decision = Decision.DENY
        assert "The person has not allowed this." in bench.refused("terminal", command="touch here")
        assert not (bench.work / "here").exists()

    @pytest.mark.parametrize("mode", ["ask", "deny"])
    def test_what_only_reads_needs_nobody(self, bench: Workbench, mode: Mode, tmp_path: Path) -> None:
        bench.change(approve=None, approvals=Approvals(mode, Permits(tmp_path)))
        (bench.work / "notes.txt").write_text("hello\n")
        assert bench.call("terminal", command="cat notes.txt") == "hello\n[exit code 0]"

    def test_reading_through_a_link_to_elsewhere_is_asked_about(self, bench: Workbench) -> None:
        (bench.work / "link").symlink_to("/etc/passwd")
        bench.change(approve=None)
        bench.refused("terminal", command="cat link")

    def test_reading_a_protected_place_is_asked_about(self, bench: Workbench) -> None:
        (bench.work / ".env").write_text("KEY=1")
        bench.call("terminal", command="cat .env")
        assert [request.risk for request in bench.person.asked] == ["high"]

    def test_outside_of_the_sessions_place_everything_is_asked_about(self, bench: Workbench, tmp_path: Path) -> None:
        bench.call("terminal", command="ls", cwd=str(tmp_path))
        assert [request.risk for request in bench.person.asked] == ["high"]
        bench.call("terminal", command="ls")
        assert len(bench.person.asked) == 2

    def test_in_a_protected_place_everything_is_asked_about(self, bench: Workbench) -> None:
        (bench.work / "home" / ".ssh").mkdir(parents=True)
        bench.change(environ={**bench.context.environ, "HOME": str(bench.work / "home")})
        bench.call("terminal", command="ls", cwd="home/.ssh")
        assert [request.risk for request in bench.person.asked] == ["high"]

    def test_a_permission_does_not_reach_outside_of_the_sessions_place(self, bench: Workbench, tmp_path: Path) -> None:
        bench.person.decision = Decision.SESSION
        bench.call("terminal", command="touch here")
        bench.person.decision = Decision.DENY
        bench.refused("terminal", command="touch here", cwd=str(tmp_path))

    def test_what_was_permitted_for_the_session_is_not_asked_again(self, bench: Workbench) -> None:
        bench.person.decision = Decision.SESSION
        for _ in range(2):
            bench.call("terminal", command="touch here")
        assert [request.subject for request in bench.person.asked] == ["touch here"]
        bench.context.approvals.forget(SESSION)
