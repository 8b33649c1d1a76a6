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


def test_less_keeps_colours_and_leaves_with_q(long: Hermes) -> None:
    if shutil.which("less") is None:
        skip_or_fail("there is no less")
    with Terminal(long, "sessions", "show", "long", PAGER="less -R") as terminal:
        terminal.until("line 10").type("q")
        assert terminal.until_over() == 0
    assert b"\x1b[1m" in terminal.raw
    assert "line 39" not in terminal.text
