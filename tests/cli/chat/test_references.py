"""References in the terminal chat: read before the message is sent, and completed with Tab."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.cli.chat.stored import sessions
from tests.cli.chat.terminal import CTRL_D, ENTER, TAB, Terminal
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.support.modelserver import ModelServer, Say


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a few files."""
    project = tmp_path / "person" / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "parser.py").write_text("one\ntwo\nthree\n")
    (project / "my notes.txt").write_text("note\n")
    (project / ".env").write_text("KEY=squeamish\n")
    return project


def sent(hermes: Hermes, project: Path, *args: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args],
        env=hermes.environment(HOME=str(project.parent)),
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        cwd=project,
    )


def rows_of(hermes: Hermes) -> list[tuple[str, str]]:
    (row,) = sessions(hermes)
    with SessionDB(hermes.database) as db:
        return [(each["role"], str(each["content"])) for each in db.get_messages(row["id"])]


def test_message_is_stored_as_typed_with_its_context(hermes: Hermes, project: Path) -> None:
    text = "!say ok\n\n  @file:src/parser.py:2  \n"
    done = sent(hermes, project, "-q", text)
    assert done.stdout == "ok\n\n  @file:src/parser.py:2\n"
    assert "[attached: 1 reference, about " in done.stderr
    (_, typed), (role, context), *_ = rows_of(hermes)
    assert (typed, role) == (text, "system")
    assert context.endswith("@file:src/parser.py:2 (line 2)\n```python\ntwo\n```")


def test_problem_is_shown_and_the_message_is_sent(hermes: Hermes, project: Path) -> None:
    done = sent(hermes, project, "-Q", "-q", "!say ok @file:.env @file:/etc/hostname")
    assert (done.returncode, done.stdout) == (0, "ok @file:.env @file:/etc/hostname\n")
    assert "Note: @file:.env was not attached: files with such names contain secrets" in done.stderr
    assert "Note: @file:/etc/hostname was not attached: it is outside the session's directory" in done.stderr
    assert "[attached" not in done.stderr
    assert "squeamish" not in str(rows_of(hermes))


def test_too_much_context_sends_and_stores_nothing(hermes: Hermes, project: Path) -> None:
    (project / "large.txt").write_text("many words\n" * 100_000)
    with ModelServer(Say("no")) as server:
        hermes.home.mkdir(exist_ok=True)
        (hermes.home / "config.yaml").write_text(server.config)
        done = sent(hermes, project, "-q", "see @file:large.txt")
    assert done.returncode != 0
    assert done.stdout == ""
    assert "Error: the references name more than 50 % of what the model can read" in done.stderr
    assert server.requests == []
    assert sessions(hermes) == []


def test_piped_text_is_not_searched_for_references(hermes: Hermes, project: Path) -> None:
    done = sent(hermes, project, "-q", "!say ok", text="log: @file:src/parser.py @diff\n")
    assert done.returncode == 0
    assert "attached" not in done.stderr
    assert [role for role, _ in rows_of(hermes)] == ["user", "assistant"]
    mixed = sent(hermes, project, "-q", "!say ok @file:src/parser.py", text="log: @diff\n")
    assert "[attached: 1 reference" in mixed.stderr
    assert "@diff was not" not in mixed.stderr


def test_lines_of_a_pipe_have_references(hermes: Hermes, project: Path) -> None:
    done = sent(hermes, project, "--lines", text="!say one @file:src/parser.py\n!say two\n")
    assert done.stderr.count("[attached: 1 reference") == 1
    assert [role for role, _ in rows_of(hermes)] == ["user", "system", "assistant", "user", "assistant"]


def test_history_shows_that_context_was_attached(hermes: Hermes, project: Path) -> None:
    done = sent(hermes, project, "--lines", text="!say one @file:src/parser.py\n/history\n")
    assert "     [attached context of " in done.stderr
    assert "summary of earlier" not in done.stderr
    assert "three" not in done.stderr


def test_tab_completes_references(hermes: Hermes, project: Path) -> None:
    with Terminal(hermes, cwd=project, HOME=str(project.parent)) as terminal:
        terminal.until_prompt().type(f"!say ok @pars{TAB}").until("@file:src/parser.py")
        terminal.type(f" and @file:note{TAB}").until('@file:"my notes.txt"')
        terminal.type(f" and @folder:s{TAB}").until("@folder:src")
        terminal.type(ENTER).until("[attached: 3 references").until("◆ ok").until_prompt().type(CTRL_D)
        terminal.until_over()
    assert [role for role, _ in rows_of(hermes)] == ["user", "system", "assistant"]


def test_refused_message_is_offered_for_editing(hermes: Hermes, project: Path) -> None:
    (project / "large.txt").write_text("many words\n" * 100_000)
    with Terminal(hermes, cwd=project, HOME=str(project.parent)) as terminal:
        terminal.enter("see @file:large.txt").until("nothing was sent").until("> see @file:large.txt")
        terminal.type(f":1{ENTER}").until("[attached: 1 reference").until_prompt().type(CTRL_D)
        terminal.until_over()
    assert rows_of(hermes)[0] == ("user", "see @file:large.txt:1")


def test_file_outside_is_asked_about(hermes: Hermes, project: Path) -> None:
    (project.parent / "other.txt").write_text("there\n")
    with Terminal(hermes, cwd=project, HOME=str(project.parent)) as terminal:
        terminal.enter("!say ok @file:../other.txt").until("Allow it?")
        terminal.type(f"y{ENTER}").until("[attached: 1 reference").until("◆ ok").until_prompt().type(CTRL_D)
        terminal.until_over()
    assert "there" in rows_of(hermes)[1][1]
