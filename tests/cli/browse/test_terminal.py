"""Browsing in a real terminal, from the first key to the resumed chat."""

from __future__ import annotations

import re
import signal
import sys

import pexpect  # type: ignore[import-untyped]
import pytest

from tests.cli.browse.conftest import AUTH, LETTER, PLAIN, TRIP
from tests.cli.chat.stored import sessions
from tests.cli.chat.terminal import CTRL_C, CTRL_D, ENTER, LIMIT_S, TAB, Terminal
from tests.cli.conftest import Hermes

ESCAPE = "\x1b"
LEAVE_SCREEN = b"\x1b[?1049l"
SIZES = [(60, 16), (80, 24), (120, 40)]
CURSORS = {b"\x1b[30;47m", b"\x1b[2;30;47m"}
"""The colours of the cursor in a field, and of a button."""
BROKEN = """
import sys
from hermes.cli.app import run
from hermes.cli.browse.queries import SessionQueries

def count(*args):
    raise RuntimeError("a mistake")

SessionQueries.count = count
sys.exit(run(["sessions", "browse"]))
"""


@pytest.mark.parametrize(("columns", "lines"), SIZES)
def test_filter_rename_archive_delete_and_resume(stored: Hermes, columns: int, lines: int) -> None:
    with Terminal(stored, "sessions", "browse", columns=columns, lines=lines) as terminal:
        terminal.until("4 conversations, sorted by activity").until("refactoring").until("京都旅行")
        terminal.type("weath").until("1 conversation by title or preview").until_gone("refactoring")
        terminal.type(f"{TAB}r").until("Title:").type(f"umbrellas{ENTER}").until(f"{PLAIN}  umbrellas")
        terminal.type(ESCAPE).until("4 conversations, sorted by activity").until("refactoring")
        terminal.type(f"{ESCAPE}[Ba").until(f"{TRIP} is archived.")
        terminal.type("d").until("Delete “a letter”?").until("1 session with 1 message.")
        terminal.type("y").until(f"{LETTER}: Deleted 1 session, 1 message.")
        terminal.type(f"{ESCAPE}[H{ENTER}").until(f'↻ Resumed {AUTH} "refactoring auth"')
        assert LEAVE_SCREEN in terminal.raw
        output = terminal.raw[terminal.raw.rindex(LEAVE_SCREEN) :].decode()
        assert f"{PLAIN}  umbrellas" in output
        assert f"{TRIP} is archived." in output
        assert f"{LETTER}: Deleted 1 session, 1 message." in output
        terminal.until_prompt().type(CTRL_D)
        assert terminal.until_over() == 0
    found = {row["id"]: (row["title"], bool(row["archived"])) for row in sessions(stored)}
    assert found == {
        AUTH: ("refactoring auth", False),
        TRIP: ("京都旅行の計画 🎉", True),
        PLAIN: ("umbrellas", False),
    }


def test_wide_terminal_shows_the_preview_pane(stored: Hermes) -> None:
    with Terminal(stored, "sessions", "browse", columns=120, lines=40) as terminal:
        terminal.until("4 conversations").type(f"{TAB}{ESCAPE}[F").until("◆ Hermes: It rains cats and dogs.")


@pytest.mark.parametrize(("keys", "exit_code"), [(ESCAPE, 0), (f"{TAB}q", 0), (CTRL_C, 130)])
def test_leaving_restores_the_terminal(stored: Hermes, keys: str, exit_code: int) -> None:
    with Terminal(stored, "sessions", "browse") as terminal:
        terminal.until("4 conversations").type(keys)
        assert terminal.until_over() == exit_code
        assert LEAVE_SCREEN in terminal.raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_the_screen_cleanly(stored: Hermes, number: signal.Signals) -> None:
    with Terminal(stored, "sessions", "browse") as terminal:
        terminal.until("4 conversations").kill(number)
        assert terminal.until_over() == 128 + number
        assert LEAVE_SCREEN in terminal.raw


def test_crash_restores_the_terminal(stored: Hermes) -> None:
    process = pexpect.spawn(
        sys.executable, ["-c", BROKEN], env=stored.environment(), dimensions=(24, 80), timeout=LIMIT_S
    )
    process.expect(pexpect.EOF)
    process.close()
    assert process.exitstatus == 1
    assert LEAVE_SCREEN in process.before
    assert b"a mistake" in process.before[process.before.rindex(LEAVE_SCREEN) :]


def test_no_color_removes_colours(stored: Hermes) -> None:
    with Terminal(stored, "sessions", "browse", NO_COLOR="1", COLORTERM="truecolor") as terminal:
        terminal.until("4 conversations").type(ESCAPE)
        assert terminal.until_over() == 0
        assert b"refactoring auth" in terminal.raw
        assert re.findall(rb"\x1b\[[0-9;]*m", terminal.raw)
        assert re.findall(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m", terminal.raw) == []


BACKGROUNDS = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:4[0-8]|10[0-7])[0-9;]*m")


def test_background_is_that_of_the_terminal(stored: Hermes) -> None:
    with Terminal(stored, "sessions", "browse", COLORTERM="truecolor", TERM="xterm-256color") as terminal:
        terminal.until("4 conversations").type(f"{TAB}d").until("Delete “refactoring auth”?").type("n")
        terminal.until("Nothing was deleted.").type(ESCAPE)
        assert terminal.until_over() == 0
        written = terminal.raw.replace(b"\x1b[7m", b"")
        assert {found[0] for found in re.finditer(BACKGROUNDS, written)} <= CURSORS


def test_too_small_terminal_is_reported(stored: Hermes) -> None:
    with Terminal(stored, "sessions", "browse", columns=59, lines=16) as terminal:
        terminal.until("Terminal too small: 59x16").type(ESCAPE)
        assert terminal.until_over() == 0


def test_missing_database_is_reported_and_not_created(hermes: Hermes) -> None:
    with Terminal(hermes, "sessions", "browse") as terminal:
        terminal.until("No sessions yet")
        assert terminal.until_over() == 0
    assert not hermes.home.exists()


class TestNumbers:
    def test_number_chooses_a_session_on_a_dumb_terminal(self, stored: Hermes) -> None:
        with Terminal(stored, "sessions", "browse", TERM="dumb") as terminal:
            terminal.until("4 of 4 conversations").until("Resume which [1-4]").type(f"9{ENTER}").until(
                "Type a number from the list."
            )
            terminal.type(f"3{ENTER}").until(f'Resumed {LETTER} "a letter"').until_prompt().type(CTRL_D)
            assert terminal.until_over() == 0

    @pytest.mark.parametrize("keys", [ENTER, f"q{ENTER}", CTRL_D])
    def test_numbered_list_can_be_left(self, stored: Hermes, keys: str) -> None:
        with Terminal(stored, "sessions", "browse", TERM="dumb") as terminal:
            terminal.until("Resume which").type(keys)
            assert terminal.until_over() == 0

    def test_numbered_list_shows_the_next_page(self, stored: Hermes) -> None:
        stored.store(*((f"s{number:04}", "cli", None, f"number {number}") for number in range(20)))
        with Terminal(stored, "sessions", "browse", TERM="dumb") as terminal:
            terminal.until("20 of 24 conversations").until("m for more").type(f"m{ENTER}")
            terminal.until("24 of 24 conversations").type(f"4{ENTER}").until("Resumed s0019").until_prompt().type(
                CTRL_D
            )
            assert terminal.until_over() == 0


def test_browse_without_a_terminal_is_a_list(stored: Hermes) -> None:
    done = stored("sessions", "browse", "--source", "cli")
    assert done.returncode == 0
    assert done.stdout == stored("sessions", "list", "--source", "cli").stdout
    assert "`hermes -r ID`" in done.stderr


def test_browse_refuses_json(stored: Hermes) -> None:
    done = stored("sessions", "browse", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--json" in done.stderr
