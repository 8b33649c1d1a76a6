"""A chat in a real terminal: input, output and leaving."""

from __future__ import annotations

import os
import re
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.cli.chat.prompt.history import HISTORY
from hermes.cli.chat.terminal.signals import CtrlCPresses
from tests.cli.chat.conftest import Remember
from tests.cli.chat.stored import sessions, transcript
from tests.cli.chat.terminal import ALT_ENTER, BACKSPACE, CTRL_C, CTRL_D, ENTER, TAB, UP, Terminal, without_ids
from tests.cli.conftest import Hermes


def test_first_chat_looks_as_expected(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.enter("/title first words")
        terminal.enter("!say Hello, you.").until("◆ Hello, you.")
        terminal.until_prompt().type(CTRL_D)
        assert terminal.until_over() == 0
        lines = without_ids(terminal.lines)
    assert lines[:8] == [
        "Hermes, with the offline model, because no other is configured. See /help.",
        "> /title first words",
        "Title: first words (stored with the first message)",
        "> !say Hello, you.",
        "◆ Hello, you.",
        "",
        ">",
        "",
    ]
    duration = lines.index("Messages:       2 (1 user, 0 tool calls)") - 1
    assert lines[duration].startswith("Duration:")
    assert re.fullmatch(r"Tokens:         \d+ read, \d+ written", lines[-1])
    assert [*lines[8:duration], *lines[duration + 1 : -1]] == [
        "Resume this session with:",
        "  hermes -r <id>",
        '  hermes -c "first words"',
        "",
        "Session:        <id>",
        "Title:          first words",
        "Messages:       2 (1 user, 0 tool calls)",
    ]
    (row,) = sessions(hermes)
    assert (row["title"], row["source"], row["end_reason"]) == ("first words", "cli", "user_exit")


def test_nothing_on_the_terminal_is_ever_cleared(hermes: Hermes) -> None:
    with Terminal(hermes, "-q", "!say done") as terminal:
        terminal.until_over()
        assert b"\x1b[2J" not in terminal.raw
    with Terminal(hermes) as terminal:
        terminal.enter("!say done").until_prompt().type(CTRL_D)
        terminal.until_over()
        assert not any(each in terminal.raw for each in (b"\x1b[2J", b"\x1b[3J", b"\x1b[?1049h", b"\x1bc"))
        assert "◆ done" in terminal.text


def test_chat_without_messages_stores_nothing(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.enter("/title never used").until_prompt().type(CTRL_D)
        assert terminal.until_over() == 0
        assert "No messages sent, so no session was saved." in terminal.text
    assert sessions(hermes) == []


@pytest.mark.parametrize("keys", [f"one{ALT_ENTER}two", f"one\\{ENTER}two", "\x1b[200~one\ntwo\x1b[201~"])
def test_several_lines_are_one_message(hermes: Hermes, keys: str) -> None:
    with Terminal(hermes) as terminal:
        terminal.enter("/title lines").until_prompt().type(keys).until(". two")
        terminal.type(ENTER).until("◆").until_prompt().type(CTRL_D)
        terminal.until_over()
    (row,) = sessions(hermes)
    assert transcript(hermes, row["id"])[0] == ("user", "one\ntwo")


def test_a_backslash_within_a_line_is_a_backslash(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.enter("!say a\\b").until("◆ a\\b")


def test_commands_and_titles_are_completed(hermes: Hermes) -> None:
    hermes.store(("20261101_101010_aaaaaaaa", "cli", "京都旅行 plans", "hello"))
    with Terminal(hermes) as terminal:
        terminal.until_prompt().type(f"/resu{TAB}").until("> /resume").type(f" 京{TAB}").until(
            "> /resume 京都旅行 plans"
        )
        terminal.type(ENTER).until("Resumed 20261101_101010_aaaaaaaa").until_prompt()
        terminal.type(f"/re{TAB}").until("> /reset").type(ENTER).until("New session.")
        terminal.until_prompt().type(f"/sessions 20261101{TAB}").until("> /sessions 20261101_101010_aaaaaaaa")


def test_history_of_one_chat_is_available_in_the_next(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.enter("!say again").until("◆ again").until_prompt().type(CTRL_D)
        terminal.until_over()
    assert stat.S_IMODE((hermes.home / HISTORY).stat().st_mode) == 0o600
    with Terminal(hermes) as terminal:
        terminal.until_prompt().type(UP).until("> !say again").type(ENTER).until("◆ again")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/full")])
def test_unusable_history_file_does_not_disturb_the_chat(hermes: Hermes, make: Callable[[Path], None]) -> None:
    hermes.home.mkdir(exist_ok=True, mode=0o700)
    make(hermes.home / HISTORY)
    with Terminal(hermes) as terminal:
        terminal.enter("!say heard").until("◆ heard").until_prompt()
        terminal.type("half").until("> half").type(CTRL_C).until("Line dropped").until_prompt()
        terminal.type("a draft").until("> a draft").kill(signal.SIGTERM)
        assert terminal.until_over() == 128 + signal.SIGTERM
        assert "Traceback" not in terminal.text
        assert "xception" not in terminal.text


def test_input_during_an_answer_goes_to_the_next_prompt(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.enter("!long 30 0.05").until("word5").type("!say next").until("> !say next")
        assert re.sub(r"\s", "", terminal.text).count("!saynext") == 1
        terminal.type(ENTER).until("◆ next")


def test_input_during_an_answer_survives_ctrl_c(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.enter("!long 600 0.05").until("word5").type("!say next").type(CTRL_C).until("Interrupted")
        terminal.until("> !say next").type(ENTER).until("◆ next")


class TestLeaving:
    def test_ctrl_c_twice_in_a_row_leaves(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type(CTRL_C).until("Press Ctrl-C again or Ctrl-D to leave")
            terminal.until_prompt().type(CTRL_C)
            assert terminal.until_over() == 0
            assert "No messages sent" in terminal.text

    def test_two_ctrl_c_at_once_leave_cleanly(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type(CTRL_C + CTRL_C)
            assert terminal.until_over() == 0
            assert "No messages sent" in terminal.text

    def test_ctrl_c_drops_a_line_that_the_up_key_brings_back(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type(CTRL_C).until("Press Ctrl-C again or Ctrl-D to leave").until_prompt()
            terminal.type("!say half").until("> !say half").type(CTRL_C).until("Line dropped").until_prompt()
            terminal.type(UP).until("Line dropped. Press Up to get it back.\n> !say half").type(ENTER).until("◆ half")

    def test_ctrl_c_does_not_leave_when_another_key_was_pressed_between(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type(CTRL_C).until("Press Ctrl-C again or Ctrl-D to leave").until_prompt()
            terminal.type("x").until("> x").type(BACKSPACE).until_prompt().type(CTRL_C)
            terminal.until_times("Press Ctrl-C again", 2)
            terminal.enter("!say still here").until("◆ still here")

    def test_a_draft_survives_the_end_of_the_terminal(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type("a long thought").until("> a long thought").kill(signal.SIGTERM)
            terminal.until_over()
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type(UP).until("> a long thought")

    def test_ctrl_c_does_not_leave_after_a_message_between(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().type(CTRL_C).until("Press Ctrl-C again")
            terminal.enter("!say still here").until("◆ still here").until_prompt().type(CTRL_C)
            terminal.until_prompt().enter("!say and here").until("◆ and here")

    @pytest.mark.parametrize("command", ["/quit", "/exit", "/QUIT", "exit", "quit", ":q", "Exit"])
    def test_leaving_words_and_commands_leave(self, hermes: Hermes, command: str) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter(command)
            assert terminal.until_over() == 0
        assert sessions(hermes) == []

    def test_sentence_with_exit_is_a_message(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("exit?").until("◆").until_prompt()


@pytest.mark.parametrize(
    ("after_s", "keys", "expected"),
    [(0.1, 0, True), (2.0, 0, True), (2.1, 0, False), (0.1, 1, False), (0.1, -1, False)],
)
def test_two_presses_count_if_fast_and_without_other_keys(after_s: float, keys: int, expected: bool) -> None:
    presses = CtrlCPresses()
    assert not presses.is_second(100.0, 5)
    assert presses.is_second(100.0 + after_s, 5 + keys) is expected
    assert not presses.is_second(200.0, 5)


class TestKindsOfTerminals:
    def test_no_color_is_respected(self, hermes: Hermes, remember: Remember) -> None:
        remember("a1", ("user", "hello"), ("assistant", "yes?"))
        with Terminal(hermes, "-c", NO_COLOR="1") as terminal:
            terminal.until("● You: hello").enter("!say plain").until("◆ plain").until_prompt()
            assert {terminal.colour_of("●"), terminal.colour_of("◆")} == {"default"}

    def test_a_dumb_terminal_gets_plain_lines(self, hermes: Hermes) -> None:
        with Terminal(hermes, TERM="dumb") as terminal:
            terminal.enter("!say plain").until("◆ plain").until_prompt()
            terminal.enter("!long 20 0.05").until("word5").type(f"!say typed ahead{ENTER}").until("◆ typed ahead")
            terminal.until_prompt().type("dropped").type(CTRL_C).until("Press Ctrl-C again").until_prompt()
            terminal.enter("!say more").until("◆ more").until_prompt().type(CTRL_C).rest(0.1).type(CTRL_C)
            assert terminal.until_over() == 0
            assert b"\x1b" not in terminal.raw

    def test_narrow_terminal_works(self, hermes: Hermes) -> None:
        hermes.store(("20261101_101010_aaaaaaaa", "cli", "narrow", "a question that is longer than one line"))
        with Terminal(hermes, "-c", columns=40) as terminal:
            terminal.until_prompt()
            assert "\n".join(terminal.lines[3:7]) == (
                "╭─ Previous Conversation ──────────────╮\n"
                "│ ● You: a question that is longer     │\n"
                "│   than one line                      │\n"
                "╰──────────────────────────────────────╯"
            )
            terminal.enter("/help").until("/quit").enter("/status").until("Tokens").until_prompt()

    def test_what_a_model_writes_cannot_act_on_the_terminal(self, hermes: Hermes) -> None:
        with Terminal(hermes, "-q", "!say \x1b]0;owned\x07\x1b[31mred") as terminal:
            terminal.until_over()
            assert "\\x1b]0;owned\\x07\\x1b[31mred" in terminal.text
