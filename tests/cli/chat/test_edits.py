"""Changing files from a terminal chat: the question shows the change in colours, and /undo puts the file back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.chat.terminal import CTRL_D, Terminal
from tests.cli.conftest import Hermes

BEFORE = "def greet(name):\n\n    if name:\n        return 'hello ' + name\n\n    return 'hello'\n"
OLD, NEW = "'hello ' + name", "f'Hello, {name}!'  # a long remark about why this is better, which has to be wrapped"
CALL = f"!tool edit_file {json.dumps({'path': 'greet.py', 'old': OLD, 'new': NEW})}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a file."""
    project = tmp_path / "person" / "project"
    project.mkdir(parents=True)
    (project / "greet.py").write_text(BEFORE)
    return project


def shown_change(terminal: Terminal) -> list[str]:
    """Return the rows of the change, without their margin."""
    rows = [row[2:] for row in terminal.lines]
    first = next(number for number, row in enumerate(rows) if row.endswith("def greet(name):"))
    last = next(number for number, row in enumerate(rows) if row.endswith("return 'hello'"))
    return [row.rstrip() for row in rows[first : last + 1]]


@pytest.mark.parametrize(("columns", "lines"), [(120, 40), (60, 30)])
def test_change_is_shown_with_numbers_and_colours_before_it_is_made(
    hermes: Hermes, project: Path, columns: int, lines: int
) -> None:
    with Terminal(hermes, cwd=project, columns=columns, lines=lines, HOME=str(project.parent)) as terminal:
        terminal.enter(CALL).until("  1 line added, 1 removed").until("Allow it?")
        rows = shown_change(terminal)
        assert rows[:3] == ["  1   def greet(name):", "  2", "  3       if name:"]
        assert rows[3] == "  4 -         return 'hello ' + name"
        assert rows[4].startswith("  4 +         return f'Hello, {name}!'  # a long remark")
        assert len(rows) == (7 if columns == 120 else 8)
        assert b"\x1b[31m  4 -         return 'hello ' + name" in terminal.raw
        assert b"\x1b[32m  4 +         return f'Hello" in terminal.raw
        assert (project / "greet.py").read_text() == BEFORE
        assert "→ edit_file greet.py" in terminal.lines
        terminal.type("y").until("edit_file returned: [changed greet.py:").until_prompt()
        assert "  ✓ changed greet.py: 1 line added, 1 removed" in terminal.lines
        assert (project / "greet.py").read_text() == BEFORE.replace(OLD, NEW)
        terminal.enter("/undo").until("has its former").until_times("> !tool", 2)
        assert (project / "greet.py").read_text() == BEFORE
        terminal.type(f"\x15{CTRL_D}").until_over()
