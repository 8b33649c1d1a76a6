"""The keyboard during an answer, the user's own commands, and calling the user back."""

from __future__ import annotations

import signal
from base64 import b64encode
from pathlib import Path

import pytest

from hermes.cli.chat.own_commands import HEAD, TAIL, Output
from hermes.cli.chat.slash.terminal import last_code
from tests.cli.chat.stored import sessions, transcript
from tests.cli.chat.terminal import CTRL_C, CTRL_D, ENTER, TAB, UP, Terminal
from tests.cli.conftest import Hermes
from tests.support.modelserver import ModelServer, Say

ESC = "\x1b"


def configure(hermes: Hermes, text: str) -> None:
    hermes.home.mkdir(mode=0o700, exist_ok=True)
    (hermes.home / "config.yaml").write_text(text)


class TestEsc:
    def test_esc_stops_an_answer_and_the_text_so_far_is_stored(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!long 600 0.05").until("word5").type(ESC).until("Interrupted").until_prompt()
            terminal.enter("!say still here").until("◆ still here").until_prompt()
        (row,) = sessions(hermes)
        assert "word5" in transcript(hermes, row["id"])[1][1]

    def test_keys_before_esc_are_at_the_next_prompt(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!long 600 0.05").until("word5").type("!say new plan").type(ESC).until("Interrupted")
            terminal.until("> !say new plan").type(ENTER).until("◆ new plan")

    @pytest.mark.parametrize("keys", ["\x1b[A", "\x1bOP", "\x1b[1;5C", "\x1bx"])
    def test_other_keys_that_begin_with_esc_stop_nothing(self, hermes: Hermes, keys: str) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!long 20 0.05").until("word5").type(keys).until("word20").until("> ")
            assert "Interrupted" not in terminal.text

    def test_question_during_a_turn_gets_its_own_keys(self, hermes: Hermes) -> None:
        hermes.home.mkdir(mode=0o700)
        with Terminal(hermes, cwd=hermes.home) as terminal:
            terminal.enter('!tool terminal {"command": "touch made"}').until("Allow it?").type(f"y{ENTER}")
            terminal.until_prompt().enter("!long 600 0.05").until("word5").type(ESC).until("Interrupted")
        assert (hermes.home / "made").exists()

    def test_end_of_the_terminal_during_an_answer_ends_the_chat(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!long 600 0.05").until("word5").kill(signal.SIGHUP)
            assert terminal.until_over() == 128 + signal.SIGHUP


class TestOwnCommands:
    def test_output_is_shown_and_goes_to_the_model_with_the_next_message(self, hermes: Hermes, tmp_path: Path) -> None:
        (tmp_path / "note.txt").write_text("the answer is 42\n")
        with ModelServer(Say("I see."), Say("Nothing new.")) as server:
            configure(hermes, server.config + "agent: {auto_title: false}\n")
            with Terminal(hermes, cwd=tmp_path) as terminal:
                terminal.enter("!cat note.txt").until("the answer is 42").until_prompt()
                assert server.requests == []
                terminal.enter("what is it?").until("◆ I see.").until_prompt()
                terminal.enter("and now?").until("◆ Nothing new.").until_prompt()
            first, second = server.requests
        assert "the answer is 42" in first.last_text
        assert "!cat note.txt (the user ran this command; exit code 0)" in first.last_text
        assert "42" not in second.last_text
        (row,) = sessions(hermes)
        assert transcript(hermes, row["id"])[0] == ("user", "what is it?")

    def test_secrets_in_an_output_are_not_sent(self, hermes: Hermes) -> None:
        key = "sk-" + "a1B2" * 12
        with ModelServer(Say("I see.")) as server:
            configure(hermes, server.config + "agent: {auto_title: false}\n")
            with Terminal(hermes) as terminal:
                terminal.enter(f"!echo OPENAI_API_KEY={key}").until(f"\nOPENAI_API_KEY={key}").until_prompt()
                terminal.enter("hi").until("◆ I see.")
            assert key not in str(server.requests[0].messages).replace(f"!echo OPENAI_API_KEY={key}", "")

    def test_exit_code_is_shown_and_ctrl_c_ends_only_the_command(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!exit 7").until("[exit code 7]").until_prompt()
            terminal.enter("!echo begun; sleep 600").until("\nbegun").type(CTRL_C).until("[interrupted]").until_prompt()
            terminal.enter("!say well").until("◆ well")

    def test_process_in_the_background_does_not_hold_the_prompt(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!sleep 600 & echo pid=$!").until("pid=").until_prompt()
            pid = next(line for line in terminal.lines if line.startswith("pid=")).removeprefix("pid=")
            terminal.enter(f"!kill {pid}").until_prompt()

    def test_control_characters_of_a_command_do_not_reach_the_terminal(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!printf 'a\\033]0;title\\007b\\n'").until("0;title").until_prompt()
            assert b"\x1b]0;title" not in terminal.raw

    @pytest.mark.parametrize("line", ["!!! important", "!"])
    def test_other_exclamation_marks_are_messages(self, hermes: Hermes, line: str) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter(line).until("◆").until_prompt()
        assert len(sessions(hermes)) == 1

    def test_long_output_keeps_its_ends(self) -> None:
        output = Output()
        for number in range(20_000):
            output.add(f"line {number}\n".encode())
        assert output.text.startswith("line 0\n")
        assert output.text.endswith("line 19999\n")
        assert "omitted" in output.text
        assert len(output.text) < HEAD + TAIL + 100


class TestClipboardAndScreen:
    def test_copy_puts_the_last_answer_or_its_code_into_the_clipboard(self, hermes: Hermes) -> None:
        with ModelServer(Say("Run this:\n\n```sh\necho one\n```\n\nThat is all.")) as server:
            configure(hermes, server.config + "agent: {auto_title: false}\n")
            with Terminal(hermes) as terminal:
                terminal.enter("/copy").until("there is no answer to copy yet")
                terminal.enter("how?").until("That is all.").until_prompt().enter("/copy").until("Copied")
                assert b"\x1b]52;c;" + b64encode(b"Run this:\n\n```sh\necho one\n```\n\nThat is all.") in terminal.raw
                terminal.enter("/copy code").until("Copied 8 characters")
                assert b"\x1b]52;c;" + b64encode(b"echo one") + b"\x07" in terminal.raw

    def test_clear_empties_the_screen_and_starts_a_new_session(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!say one").until("◆ one").until_prompt()
            terminal.type(f"/clear{ENTER}").until("New session.")
            terminal.until_prompt()
            assert "◆ one" not in terminal.screen
            terminal.enter("!say two").until("◆ two").until_prompt().enter("/cost").until("Input tokens:")
        assert len(sessions(hermes)) == 2

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("```\na\n```\n~~~py\nb\nc\n~~~", "b\nc"),
            ("no code", ""),
            ("````\n```\ninner\n```\n````", "```\ninner\n```"),
            ("```\nnot closed", ""),
        ],
    )
    def test_last_code_is_found(self, text: str, code: str) -> None:
        assert last_code(text) == code


class TestModels:
    def test_model_lists_and_completes_what_the_endpoint_offers(self, hermes: Hermes) -> None:
        with ModelServer(models=("test-model", "small-one", "large-one")) as server:
            configure(hermes, server.config + "agent: {auto_title: false}\n")
            with Terminal(hermes) as terminal:
                terminal.enter("/model").until("* test-model").until("  small-one").until("  large-one").until_prompt()
                terminal.type(f"/model lar{TAB}").until("> /model large-one").type(ENTER)
                terminal.until("Model: large-one (custom), from now on").until_prompt()
                assert terminal.status.startswith("large-one · ")
            assert len(server.visits) == 1

    def test_endpoint_without_a_list_does_not_disturb(self, hermes: Hermes) -> None:
        with ModelServer() as server:
            configure(hermes, server.config.replace("/v1", "/v1/elsewhere") + "agent: {auto_title: false}\n")
            server.models = ()
        with Terminal(hermes) as terminal:
            terminal.enter("/model").until("does not list its models").until_prompt()
            terminal.type(f"/model x{TAB}").until("> /model x")


class TestCallingBack:
    @pytest.mark.parametrize(
        ("how", "expected"), [("bell", b"\a"), ("desktop", b"\x1b]9;Hermes is ready\a"), ("none", b"")]
    )
    def test_user_is_called_after_a_long_turn(self, hermes: Hermes, how: str, expected: bytes) -> None:
        configure(hermes, f"display: {{notify: '{how}', notify_after_s: 0.2}}\n")
        with Terminal(hermes) as terminal:
            terminal.enter("!long 6 0.1").until("word6").until_prompt()
            assert expected in terminal.raw
            assert (b"\a" in terminal.raw) is bool(expected)

    def test_user_is_not_called_after_a_short_turn(self, hermes: Hermes) -> None:
        configure(hermes, "display: {notify: bell, notify_after_s: 60}\n")
        with Terminal(hermes) as terminal:
            terminal.enter("!say short").until("◆ short").until_prompt()
            assert b"\a" not in terminal.raw

    def test_command_line_of_one_message_rings_nothing(self, hermes: Hermes) -> None:
        configure(hermes, "display: {notify: bell, notify_after_s: 0}\n")
        with Terminal(hermes, "-q", "!say done") as terminal:
            terminal.until_over()
            assert b"\a" not in terminal.raw


def test_dropped_draft_is_in_the_history_of_the_next_chat(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.until_prompt().type("half a thought").until("> half a thought").type(CTRL_C).until("Line dropped")
        terminal.until_prompt().type(CTRL_D)
        terminal.until_over()
    with Terminal(hermes) as terminal:
        terminal.until_prompt().type(UP).until("> half a thought")


def test_ctrl_c_in_a_search_of_the_history_leaves_the_search_only(hermes: Hermes) -> None:
    with Terminal(hermes) as terminal:
        terminal.enter("!say one").until("◆ one").until_prompt()
        terminal.type("\x12").until("I-search backward")
        terminal.type(CTRL_C).type("!say two").until("> !say two").type(ENTER).until("◆ two")
