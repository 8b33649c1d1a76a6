"""`hermes sessions show` in a pager, if the text is longer than the screen."""

from __future__ import annotations

import shutil

import pytest

from hermes_state import SessionDB
from tests.cli.chat.terminal import Terminal
from tests.cli.conftest import Hermes
from tests.support.servers import skip_or_fail

PAGER = "sh -c 'echo PAGED; cat'"


@pytest.fixture
def long(hermes: Hermes) -> Hermes:
    """A home with a session that takes more than a screen."""
    hermes.home.mkdir()
    with SessionDB(hermes.database) as db:
        db.create_session("long", "cli")
        db.append_message("long", "user", "\n".join(f"line {number}" for number in range(40)))
        db.create_session("short", "cli")
        db.append_message("short", "user", "hello")
    return hermes


def shown(hermes: Hermes, *args: str, PAGER: str, TERM: str = "xterm") -> str:
    with Terminal(hermes, "sessions", "show", *args, PAGER=PAGER, TERM=TERM) as terminal:
        assert terminal.until_over() == 0
        return terminal.text


def test_long_session_is_shown_in_the_pager_of_the_user(long: Hermes) -> None:
    text = shown(long, "long", PAGER=PAGER)
    assert text.startswith("PAGED\nline 0 line 1")
    assert "line 39" in text


@pytest.mark.parametrize("args", [("short",), ("long", "--no-pager")])
def test_short_session_and_no_pager_are_written_at_once(long: Hermes, args: tuple[str, ...]) -> None:
    assert "PAGED" not in shown(long, *args, PAGER=PAGER)


@pytest.mark.parametrize("pager", ["", "cat", "/missing/pager", "'open"])
def test_useless_pager_is_not_used(long: Hermes, pager: str) -> None:
    assert "line 39" in shown(long, "long", PAGER=pager)


def test_dumb_terminal_has_no_pager(long: Hermes) -> None:
    assert "PAGED" not in shown(long, "long", PAGER=PAGER, TERM="dumb")


def test_pager_that_ends_early_is_no_error(long: Hermes) -> None:
    assert "line 39" not in shown(long, "long", PAGER="head -3")


def test_pipe_has_no_pager(long: Hermes) -> None:
    done = long("sessions", "show", "long", PAGER=PAGER)
    assert "PAGED" not in done.stdout
    assert done.stdout.count("line ") > 39


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_messages_are_broken_between_words_and_answers_are_drawn(hermes: Hermes, columns: int) -> None:
    hermes.home.mkdir()
    words = "some words that go on and on until a narrow terminal has to break them"
    with SessionDB(hermes.database) as db:
        db.create_session("one", "cli")
        db.set_session_title("one", f"A title of {words}")
        db.append_message("one", "user", f"  **Say** {words}")
        db.append_message("one", "assistant", f"- **bold** {words}\n\n```python\nx = 1\n```")
    with Terminal(hermes, "sessions", "show", "one", columns=columns, lines=60) as terminal:
        assert terminal.until_over() == 0
        lines = terminal.lines
        assert b"bold\x1b[0m" in terminal.raw
    assert all(len(line) <= columns for line in lines)
    shown = " ".join(" ".join(lines).split())
    assert f"A title of {words} Session:" in shown
    assert f"**Say** {words} ──" in shown
    assert f"• bold {words} ```python x = 1 ```" in shown
    piped = hermes("sessions", "show", "one").stdout
    assert f"- **bold** {words}\n\n```python" in piped


def test_less_keeps_colours_and_leaves_with_q(long: Hermes) -> None:
    if shutil.which("less") is None:
        skip_or_fail("there is no less")
    with Terminal(long, "sessions", "show", "long", PAGER="less -R") as terminal:
        terminal.until("line 10").type("q")
        assert terminal.until_over() == 0
    assert b"\x1b[1m" in terminal.raw
    assert "line 39" not in terminal.text
