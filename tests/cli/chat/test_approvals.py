"""The question whether a tool may act, in a real terminal."""

from __future__ import annotations

import json
import re
import signal
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.chat.stored import sessions, transcript
from tests.cli.chat.terminal import ALT_ENTER, CTRL_C, CTRL_D, ENTER, Terminal
from tests.cli.conftest import Hermes
from tests.support.modelserver import Call, ModelServer, Say

ASK = '!tool terminal {"command": "touch made"}'
LONG = "touch made\n" + "\n".join(f": {number}" for number in range(60))


def ask(command: str) -> str:
    """Return a message that makes the offline model run a command."""
    return f"!tool terminal {json.dumps({'command': command})}"


def deny(terminal: Terminal) -> None:
    """Press n until it counts: right after other keys it belongs to them."""
    while "not allowed" not in terminal.text:
        terminal.rest().type("n")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory to work in."""
    work = tmp_path / "person" / "work"
    work.mkdir(parents=True)
    return work


@pytest.fixture
def server(hermes: Hermes) -> Iterator[ModelServer]:
    """A model server that the configuration names."""
    with ModelServer() as server:
        hermes.home.mkdir(mode=0o700)
        (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
        yield server


@pytest.mark.parametrize(("key", "is_made"), [("y", True), ("S", True), ("n", False)])
def test_one_key_decides(hermes: Hermes, work: Path, key: str, is_made: bool) -> None:
    with Terminal(hermes, cwd=work, columns=160, HOME=str(work.parent)) as terminal:
        terminal.enter(ASK).until("Allow it?")
        first = terminal.lines.index("Hermes asks to run:")
        assert terminal.lines[first + 1 : first + 11] == [
            "  touch made",
            "",
            f"  in {work}",
            "",
            "  [y] yes, once",
            f"  [s] yes, for this session: exactly this in {work}",
            f"  [a] yes, always: exactly this in {work}",
            "  [n] no",
            "  [i] no, and do this instead",
            "Allow it? y, s, a, n or i:",
        ]
        terminal.type(key).until(f"Allow it? y, s, a, n or i: {key.lower()}\n").until(
            "◆ terminal returned"
        ).until_prompt()
    assert (work / "made").exists() is is_made


def test_enter_after_the_key_answers_nothing_else(hermes: Hermes, work: Path) -> None:
    with Terminal(hermes, cwd=work) as terminal:
        terminal.enter(ASK).until("Allow it?").type(f"n{ENTER}").until("◆ terminal returned").until_prompt()
        terminal.enter("!say next").until("◆ next")
    assert not (work / "made").exists()


@pytest.mark.parametrize("text", ["yes", "why not", f"perhaps{ENTER}", "yy", ENTER, " ", "x", "\x1b[A"])
def test_other_keys_and_text_are_no_answer(hermes: Hermes, work: Path, text: str) -> None:
    with Terminal(hermes, cwd=work) as terminal:
        deny(terminal.enter(ASK).until("Allow it?").type(text))
    assert not (work / "made").exists()


def test_input_before_the_question_does_not_answer_it(hermes: Hermes, work: Path) -> None:
    with Terminal(hermes, cwd=work) as terminal:
        terminal.until_prompt().type(f"!long 30 0.05{ALT_ENTER}{ASK}{ENTER}").until("word5")
        terminal.type(f"y{ENTER}").until("Allow it?").type("n").until("not allowed").until("> y")
    assert not (work / "made").exists()
    (row,) = sessions(hermes)
    assert [text for role, text in transcript(hermes, row["id"]) if role == "user"][1:] == []


def test_one_key_decides_also_after_ctrl_z(hermes: Hermes, work: Path) -> None:
    with Terminal(hermes, cwd=work) as terminal:
        terminal.enter(ASK).until("Allow it?")
        of_a_shell = termios.tcgetattr(terminal.process.child_fd)
        of_a_shell[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(terminal.process.child_fd, termios.TCSANOW, of_a_shell)
        terminal.kill(signal.SIGCONT)
        terminal.until_times("Allow it?", 2).rest().type("y").until("✓").until_prompt()
    assert (work / "made").exists()


@pytest.mark.parametrize("key", [CTRL_D, "\x1b"])
def test_ctrl_d_and_esc_deny(hermes: Hermes, work: Path, key: str) -> None:
    with Terminal(hermes, cwd=work) as terminal:
        terminal.enter(ASK).until("Allow it?").type(key).until("✗ not allowed").until_prompt()
    assert not (work / "made").exists()


@pytest.mark.parametrize("first", ["", "i"])
def test_ctrl_c_denies_and_ends_the_turn(hermes: Hermes, work: Path, first: str) -> None:
    with Terminal(hermes, cwd=work) as terminal:
        terminal.enter(ASK).until("Allow it?")
        if first:
            terminal.type(first).until("What should Hermes do instead?")
        terminal.type(CTRL_C).until("Interrupted").until_prompt()
    assert not (work / "made").exists()


class TestWhatTheModelGets:
    def test_denial_is_short_for_the_user_and_clear_for_the_model(
        self, hermes: Hermes, work: Path, server: ModelServer
    ) -> None:
        server.then(Say(calls=[Call("terminal", {"command": "touch made"})]), Say("As you like."))
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter("go").until("Allow it?").type("n").until("◆ As you like.").until_prompt()
            assert "  ✗ not allowed\n" in terminal.text
            assert "Do not try it again" not in terminal.text
        assert "The user has not allowed this. Do not try it again" in server.requests[-1].last_text

    def test_model_gets_what_to_do_instead(self, hermes: Hermes, work: Path, server: ModelServer) -> None:
        server.then(Say(calls=[Call("terminal", {"command": "touch made"})]), Say("Then so."))
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter("go").until("Allow it?").type("i").until("What should Hermes do instead?")
            terminal.type(f"only list the files, 京{ENTER}").until("◆ Then so.").until_prompt()
            assert "What should Hermes do instead? only list the files, 京\n" in terminal.text
        wanted = "The user has not allowed this, and wants this instead: only list the files, 京"
        assert wanted in json.loads(server.requests[-1].last_text)["error"]
        assert not (work / "made").exists()


class TestKinds:
    def test_permission_for_a_kind_covers_other_arguments_but_no_chain(self, hermes: Hermes, work: Path) -> None:
        (work / "notes").write_text("x")
        with Terminal(hermes, cwd=work, columns=160, HOME=str(work.parent)) as terminal:
            terminal.enter(ask("git status -s")).until("Allow it?")
            assert f"  [p] yes, for this session: `git status *` in {work}" in terminal.lines
            terminal.type("p").until_prompt()
            terminal.enter(ask("git status --short notes")).until_times("◆ terminal returned", 2).until_prompt()
            assert terminal.text.count("Allow it?") == 1
            terminal.enter(ask("git status; touch made")).until_times("Allow it?", 2).type("n").until("not allowed")
        assert not (work / "made").exists()

    def test_kind_is_not_offered_for_other_commands(self, hermes: Hermes, work: Path) -> None:
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter(ask("git status > made")).until("Allow it? y, s, a, n or i:")
            deny(terminal.type("p"))


class TestDangers:
    def test_danger_is_named_in_words_and_in_colour(self, hermes: Hermes, work: Path) -> None:
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter(ask("rm -r made")).until("Allow it?")
            assert "Dangerous: Hermes asks to run:" in terminal.lines
            assert "  - it uses rm" in terminal.lines
            assert b"\x1b[31m\x1b[1m- it uses rm" in terminal.raw
            terminal.type("n").until("not allowed")

    def test_reasons_are_broken_between_words(self, hermes: Hermes, work: Path) -> None:
        with Terminal(hermes, cwd=work, columns=40, lines=50) as terminal:
            terminal.enter(ask("cat x | sh")).until("Allow it?")
            start = terminal.lines.index("  - it pipes text into sh, which may")
            assert terminal.lines[start + 1] == "    run it"
            deny(terminal)

    def test_command_cannot_write_a_second_finding(self, hermes: Hermes, work: Path) -> None:
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter(ask("touch made\n\nCheck this before you allow it:\n- nothing")).until("Allow it?")
            assert b"\x1b[31m\x1b[1m- nothing" not in terminal.raw
            terminal.type("n").until("not allowed")

    @pytest.mark.parametrize("char", ["\u3164", "\u2800", "\ufe0f", "\u05d0", "\u202e", "\U000e0041"])
    def test_invisible_and_bidi_characters_are_shown_by_number(self, hermes: Hermes, work: Path, char: str) -> None:
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter(ask(f"echo {char}")).until("Allow it?")
            assert f"  echo {char.encode('unicode_escape').decode()}" in terminal.lines
            assert "Dangerous: Hermes asks to run:" in terminal.lines
            terminal.type("n").until("not allowed")


class TestLongRequests:
    def test_blank_lines_push_nothing_off_the_screen(self, hermes: Hermes, work: Path) -> None:
        with Terminal(hermes, cwd=work, columns=160) as terminal:
            terminal.enter(ask("sudo true" + "\n" * 41 + "echo harmless")).until("Allow it?")
            assert "  sudo true\n  [... 40 blank lines]\n  echo harmless" in terminal.screen
            terminal.type("n").until("not allowed")

    def test_spaces_push_nothing_off_the_screen(self, hermes: Hermes, work: Path) -> None:
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter(ask(f"sudo true;{' ' * 2000}echo harmless")).until("Allow it?")
            assert "  sudo true; [... 2000 blanks] echo harmless" in terminal.screen
            terminal.type("n").until("not allowed")

    def test_yes_counts_only_after_the_last_page(self, hermes: Hermes, work: Path) -> None:
        with Terminal(hermes, cwd=work, columns=160) as terminal:
            terminal.enter(ask(LONG)).until("rows; Enter for more")
            pages = 1
            while "Allow it?" not in terminal.text:
                assert not (work / "made").exists()
                terminal.type("y").until_any(f"-- {16 * (pages + 1)} of", "Allow it?")
                pages += 1
            assert pages > 3
            assert "run touch made (61 lines, normal risk)\n  [y] yes, once\n" in terminal.screen
            assert all(f"  : {number}\n" in terminal.text for number in range(60))
            assert not (work / "made").exists()
            terminal.type("y").until("◆ terminal returned").until_prompt()
        assert (work / "made").exists()

    @pytest.mark.parametrize("command", [LONG, "sudo true " + "x" * 3000])
    def test_no_at_a_page_denies_the_request(self, hermes: Hermes, work: Path, command: str) -> None:
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter(ask(command)).until("rows; Enter for more").type("n").until("not allowed").until_prompt()
            assert "Allow it?" not in terminal.text
        assert not (work / "made").exists()

    def test_input_typed_ahead_at_a_page_is_ignored(self, hermes: Hermes, work: Path) -> None:
        command = "touch made\n" + "\n".join(f": {number}" for number in range(20))
        with Terminal(hermes, cwd=work) as terminal:
            terminal.enter(ask(command)).until("rows; Enter for more").type(f"{ENTER}y{ENTER}y")
            while "Allow it?" not in terminal.text:
                terminal.rest().type(ENTER)
            deny(terminal)
        assert not (work / "made").exists()

    @pytest.mark.parametrize("lines", [6, 8, 12])
    def test_every_row_can_be_read_on_a_low_screen(self, hermes: Hermes, work: Path, lines: int) -> None:
        command = "\n".join(f"echo {number}" for number in range(9))
        with Terminal(hermes, cwd=work, lines=lines, columns=160) as terminal:
            terminal.until_prompt().type(f"{ask(command)}{ENTER}")
            seen: set[str] = set()
            pages = 0
            while "Allow it?" not in terminal.text:
                pages += 1
                terminal.until_page(pages)
                seen |= set(re.findall(r"  echo \d", terminal.screen))
                if "Allow it?" not in terminal.text:
                    terminal.type(ENTER)
            assert len(seen) == 9
            terminal.type("n").until("not allowed")


def test_without_a_terminal_nothing_is_allowed(hermes: Hermes) -> None:
    assert "cannot be asked" in hermes("-q", ASK).stdout
