"""Kinds of commands: which commands a permission for a session covers together, and which never."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermes.agent.safety.approval import Answer, ApprovalRequest, Decision
from hermes.agent.safety.permits import DIRECTORY, Permit
from hermes.agent.safety.similar_commands import kind_of
from tests.agent.tools.workbench import Workbench


def kind(command: str) -> str | None:
    return kind_of(command, lambda word: word != "outside")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git status", "git status"),
        ("git status --short -b src/a.py", "git status"),
        ("git log --oneline -20 --stat HEAD~1", None),  # a shell would do something with ~
        ("git log --oneline -20 main", "git log"),
        ("git log -n5 origin/main", "git log"),
        ("git diff --cached 'src/a.py'", "git diff"),
        ("git show HEAD:src/a.py", "git show"),
        ("git diff @ src/a.py", "git diff"),
        ("git add -v src tests/test_a.py", "git add"),
        ("pytest -q tests/test_a.py::test_b", "pytest"),
        ("cargo test --release name", "cargo test"),
        ("ruff check src", "ruff check"),
    ],
)
def test_known_commands_have_a_kind(command: str, expected: str | None) -> None:
    assert kind(command) == expected


@pytest.mark.parametrize(
    "command",
    [
        *(f"git status{more}" for more in ("; rm x", " && rm x", " | sh", " || x", " & x", "\nrm x", "\rrm x")),
        *(f"git status {more}" for more in ("> x", "< x", "2>x", "$(rm x)", "`rm x`", "$HOME", "<(rm x)", "${x}", "*")),
        *(
            f"git status {more}"
            for more in ("{a,b}", "~", "~root", "[a]", "\\x", "# x", "!x", "a=b; c", "'a", '"$(x)"')
        ),
        *("git -c core.fsmonitor=x status", "git -C /x status", "GIT_DIR=x git status", "env git status"),
        *(
            "git diff --ext-diff",
            "git diff --output=x",
            "git log --output=x",
            "git diff --no-index a b",
            "git log -O x",
        ),
        *("git status --bogus", "git status -- x", "git fetch --upload-pack=x", "git push", "git commit", "git stash"),
        *("git diff ../x", "git diff src/../../x", "git diff /etc/passwd", "git show HEAD:../x", "git diff outside"),
        *("pytest -p x", "pytest --rootdir=x", "pytest -c x", "pytest @x y=1", "pytest -o x", "pytest --pdb"),
        *(f"{each} @options" for each in ("ruff check", "ruff check -q", "mypy", "pytest", "cargo test", "go test")),
        *("make test", "npm run build", "python x.py", "grep -r x .", "rg x", "sudo git status", "./git status"),
        *("git", "git  ", "", "status git", "gitstatus", "git 'status x'", "git statusx"),
    ],
)
def test_everything_else_has_none(command: str) -> None:
    assert kind(command) is None


class OfKind:
    """A user who allows all commands of a kind for the session."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Answer:
        self.asked.append(request)
        return Answer(Decision.SESSION, is_for_kind=True)


@pytest.fixture
def person(bench: Workbench) -> OfKind:
    """The user of the workbench."""
    person = OfKind()
    bench.change(approve=person)
    return person


def run(bench: Workbench, command: str) -> None:
    bench.run("terminal", json.dumps({"command": command}))


def test_permission_for_a_kind_covers_only_this_kind_in_this_directory(bench: Workbench, person: OfKind) -> None:
    (bench.work / "notes.md").write_text("x")
    (bench.work / "sub").mkdir()
    run(bench, "git status --short")
    assert person.asked[0].kind_permit == Permit("terminal", "git status", str(bench.work), is_for_kind=True)
    assert str(person.asked[0].kind_permit) == f"`git status *` in {bench.work}"
    run(bench, "git status -s notes.md")
    assert len(person.asked) == 1
    others = ["git diff", "git status; true", "git status .env", "git status > x", "git status /etc"]
    for number, command in enumerate(others, start=2):
        run(bench, command)
        assert len(person.asked) == number, command
    bench.run("terminal", json.dumps({"command": "git status", "cwd": "sub"}))
    assert len(person.asked) == 7
    assert not (bench.context.home / DIRECTORY).exists()


def test_dangerous_command_is_asked_about_although_its_kind_is_allowed(bench: Workbench, person: OfKind) -> None:
    run(bench, "git add src")
    run(bench, "git add .env")
    assert [each.risk for each in person.asked] == ["normal", "high"]
    assert person.asked[1].kind_permit is None
    run(bench, "git add .env")
    assert len(person.asked) == 2  # the same command: the answer was for exactly this one
    run(bench, "git add .env src")
    assert len(person.asked) == 3


def test_link_that_leads_out_of_the_directory_has_no_kind(bench: Workbench, person: OfKind) -> None:
    (bench.work / "out").symlink_to("/etc")
    run(bench, "git diff")
    run(bench, "git diff out/hostname")
    assert [each.kind for each in person.asked] == ["git diff", None]


def test_blocked_request_is_never_allowed_for_its_kind() -> None:
    request = ApprovalRequest(
        "terminal", "run git status", "", "normal", "git status", kind="git status", verdict="block"
    )
    assert request.kind_permit is None
    assert replace(request, verdict="allow").kind_permit is not None
    assert replace(request, risk="high", verdict="allow").kind_permit is None


def test_request_without_a_kind_is_covered_by_no_permission_for_one() -> None:
    permit = Permit("terminal", "git status", "/work", is_for_kind=True)
    assert not ApprovalRequest("terminal", "run git status", "", "normal", "git status", "/work").is_covered_by(permit)
