"""Interrupted answers: Ctrl-C, signals, kills and model errors."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.chat.stored import messages, sessions
from tests.cli.chat.terminal import CTRL_C, CTRL_D, Terminal
from tests.cli.conftest import TIMEOUT_S, Hermes
from tests.support.modelserver import Fail, ModelServer, Say
from tests.support.waiting import wait_until


@pytest.fixture
def server(hermes: Hermes) -> Iterator[ModelServer]:
    with ModelServer() as server:
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
        yield server


def slow_answer(*words: str) -> Say:
    """An answer that sends some words at once and then pauses."""
    return Say(pieces=[" ".join(words) + " ", "and so on"], between_s=30.0)


def stored_messages(hermes: Hermes) -> list[tuple[str, str | None, str | None]]:
    (row,) = sessions(hermes)
    return [(each["role"], each["content"], each["finish_reason"]) for each in messages(hermes, row["id"])]


class TestCtrlC:
    def test_ctrl_c_keeps_the_partial_answer_and_the_chat(self, hermes: Hermes, server: ModelServer) -> None:
        server.then(slow_answer("half", "an", "answer"))
        with Terminal(hermes) as terminal:
            terminal.enter("tell me").until("half an answer").type(CTRL_C).until(
                "Interrupted. The messages so far are saved."
            )
            terminal.enter("go on").until("◆ You said: go on").until_prompt().type(CTRL_D)
            assert terminal.until_over() == 0
        assert stored_messages(hermes)[:3] == [
            ("user", "tell me", None),
            ("assistant", "half an answer ", "interrupted"),
            ("user", "go on", None),
        ]
        with Terminal(hermes, "-c") as terminal:
            terminal.until_prompt()
            assert "◆ Hermes: half an answer [interrupted]" in terminal.text

    def test_ctrl_c_before_the_first_word_keeps_the_question(self, hermes: Hermes, server: ModelServer) -> None:
        server.then(Say("late", before_s=30.0))
        with Terminal(hermes) as terminal:
            terminal.enter("tell me").until("thinking")
            wait_until(lambda: bool(server.requests), "the question at the endpoint")
            terminal.type(CTRL_C).until("Interrupted").until_prompt()
            assert "thinking" not in terminal.text
            terminal.enter("/retry").until("◆ You said: tell me")

    def test_ctrl_c_ends_a_single_question_with_130_and_the_id(self, hermes: Hermes, server: ModelServer) -> None:
        server.then(slow_answer("half", "an", "answer"))
        process = hermes.start("-q", "tell me", stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 4) == b"half"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, out) == (130, b" an answer \n")
        assert b"\nSession:  " in err
        assert stored_messages(hermes)[1] == ("assistant", "half an answer ", "interrupted")

    def test_ctrl_c_ends_a_piped_chat(self, hermes: Hermes) -> None:
        process = hermes.start("--lines", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"!long 300 0.05\n!say two\n")
        process.stdin.flush()
        assert os.read(process.stdout.fileno(), 5) == b"word1"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 130
        assert b"two" not in out

    def test_ctrl_c_ends_the_wait_for_a_pipe(self, hermes: Hermes) -> None:
        process = hermes.start("--lines", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"!say one\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGINT)
        process.wait(TIMEOUT_S)
        process.communicate()
        assert process.returncode == 130
        assert sessions(hermes)[0]["end_reason"] == "user_exit"


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_signal_at_the_prompt_ends_the_session(self, hermes: Hermes, number: signal.Signals) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!say hello").until("◆ hello").until_prompt()
            terminal.kill(number)
            assert terminal.until_over() == 128 + number
            assert "Resume this session with:" in terminal.text
        (row,) = sessions(hermes)
        assert row["end_reason"] == "terminated"

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_signal_during_an_answer_loses_nothing(
        self, hermes: Hermes, server: ModelServer, number: signal.Signals
    ) -> None:
        server.then(slow_answer("half", "an", "answer"))
        with Terminal(hermes) as terminal:
            terminal.enter("tell me").until("half an answer")
            terminal.kill(number)
            assert terminal.until_over() == 128 + number
        assert stored_messages(hermes) == [("user", "tell me", None), ("assistant", "half an answer ", "interrupted")]

    def test_closed_terminal_ends_the_session(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.enter("!say hello").until("◆ hello").until_prompt()
            terminal.process.ptyproc.fileobj.close()
            wait_until(lambda: not terminal.process.ptyproc.isalive(), "the end of the chat")
        (row,) = sessions(hermes)
        assert row["end_reason"] in ("terminated", "user_exit")

    def test_signal_ends_the_wait_for_a_pipe(self, hermes: Hermes) -> None:
        process = hermes.start("--lines", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"!say hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"hello\n"
        process.terminate()
        process.wait(TIMEOUT_S)
        process.communicate()
        assert process.returncode == 128 + signal.SIGTERM
        (row,) = sessions(hermes)
        assert row["end_reason"] == "terminated"


class TestKill:
    def test_chat_killed_during_an_answer_can_be_resumed(self, hermes: Hermes, server: ModelServer) -> None:
        server.then(slow_answer("half", "an", "answer"))
        with Terminal(hermes) as terminal:
            terminal.enter("tell me").until("half an answer")
            terminal.kill()
            assert terminal.until_over() == -signal.SIGKILL
        with Terminal(hermes, "-c") as terminal:
            terminal.until_prompt()
            assert "● You: tell me" in terminal.text
            assert "The last message has no answer. Type /retry to get one." in terminal.text
            terminal.enter("/retry").until("◆ You said: tell me").until_prompt()
        assert [each["content"] for each in server.requests[-1].messages[1:]] == ["tell me"]


class TestFailures:
    def test_model_error_is_shown_and_the_chat_continues(self, hermes: Hermes, server: ModelServer) -> None:
        server.then(Fail(401))
        with Terminal(hermes) as terminal:
            terminal.enter("hello").until("Error: ").until("Hint: ").until_prompt()
            terminal.enter("/retry").until("◆ You said: hello").until_prompt().type(CTRL_D)
            assert terminal.until_over() == 0

    def test_model_error_in_a_single_question_exits_with_1(self, hermes: Hermes, server: ModelServer) -> None:
        server.then(Fail(401))
        done = hermes("-Q", "-q", "hello")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: ")
        assert "session_id: " in done.stderr

    def test_wait_for_a_retry_is_shown(self, hermes: Hermes, server: ModelServer) -> None:
        server.then(Fail(429, retry_after=1), Say("at last"))
        done = hermes("-q", "hello")
        assert done.stdout == "at last\n"
        assert "retrying in 1 s" in done.stderr
