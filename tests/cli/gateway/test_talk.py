"""`hermes gateway talk`: on a terminal, in a pipe, and over restarts of the gateway."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from hermes.gateway.engine.ports import Delivery
from tests.cli.chat.terminal import CTRL_C, CTRL_D, Terminal
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.cli.gateway.running import explain, gated_model, gateway, live
from tests.platforms.local_gateway import LocalGateway, local_gateway
from tests.support.waiting import LIMIT_S, wait_until

T = TypeVar("T")

TALK = ("gateway", "talk", "--chat", "c1", "--user", "ada")


def pipe(hermes: Hermes, text: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Talk with lines from a pipe."""
    return subprocess.run(
        [*COMMAND, *TALK, *args],
        env=hermes.environment(),
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )


class OnThread:
    """A local socket whose replies and previews the test decides, on an event loop of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, gateway: LocalGateway) -> None:
        self.gateway = gateway
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT_S)

    def preview(self, key: str, text: str) -> None:
        delivery = Delivery(key, "c1", text, is_final=False)
        self._loop.call_soon_threadsafe(self.gateway.adapter.preview, delivery)

    def until_seen(self, count: int) -> list[str]:
        """Wait for messages, and return their ids."""
        wait_until(lambda: len(self.gateway.seen) >= count, f"{count} messages")
        return [str(each.message_id) for each in self.gateway.seen]


@contextmanager
def socket_of(hermes: Hermes) -> Iterator[OnThread]:
    """Serve the socket of a home without an engine behind it."""
    loop, ready, leave = asyncio.new_event_loop(), Future[OnThread](), asyncio.Event()

    async def serve() -> None:
        async with local_gateway(hermes.home) as gateway:
            ready.set_result(OnThread(loop, gateway))
            await leave.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        yield ready.result(LIMIT_S)
    finally:
        loop.call_soon_threadsafe(leave.set)
        thread.join(LIMIT_S)
        loop.close()


class TestPipe:
    def test_each_line_is_answered_in_turn(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate, gateway(hermes):
            gate.open.set()
            done = pipe(hermes, "one\n\ntwo\n/queue three\n")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "You said: one\nYou said: two\nYou said: three\n"

    def test_commands_are_sent_as_they_are(self, hermes: Hermes) -> None:
        with gateway(hermes):
            done = pipe(hermes, "/status\n")
            assert "Node: " in done.stdout
            assert explain(hermes, "in:1")["kind"] == "command"

    def test_default_chat_and_user_are_the_login_name(self, hermes: Hermes) -> None:
        with gateway(hermes):
            done = subprocess.run(
                [*COMMAND, "gateway", "talk"],
                env=hermes.environment(LOGNAME="grace"),
                input="hello\n",
                capture_output=True,
                encoding="utf-8",
                timeout=TIMEOUT_S,
            )
            assert done.returncode == 0, done.stderr
            item = explain(hermes, "in:1")
        assert (item["chat_id"], item["user"]["id"]) == ("grace", "grace")

    def test_refused_message_is_an_error_and_the_next_one_is_sent(self, hermes: Hermes) -> None:
        with gateway(hermes):
            done = pipe(hermes, "x" * 40_000 + "\n/status\n")
        assert done.returncode == 1
        assert "Error: The message has 40000 characters" in done.stderr
        assert "Session: " in done.stdout

    def test_without_a_gateway_the_exit_code_is_3(self, hermes: Hermes) -> None:
        done = pipe(hermes, "hello\n")
        assert (done.returncode, done.stdout) == (3, "")
        assert "Error: no gateway listens on" in done.stderr
        assert "`hermes gateway run`" in done.stderr

    def test_answer_arrives_after_a_restart(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate, gateway(hermes) as running:
            process = subprocess.Popen(
                [*COMMAND, *TALK],
                env=hermes.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
            assert process.stdin is not None
            process.stdin.write("hello\n")
            process.stdin.close()
            process.stdin = None
            assert gate.asked.wait(LIMIT_S)
            running.process.kill()
            running.wait()
            gate.open.set()
            with gateway(hermes):
                output, errors = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, output.count("You said: hello")) == (0, 1)
        assert "The gateway is away" in errors
        assert "The gateway is back." in errors

    def test_text_of_others_cannot_control_the_terminal(self, hermes: Hermes) -> None:
        with gated_model(hermes) as gate, gateway(hermes):
            gate.open.set()
            done = pipe(hermes, "\x1b[31mred\n")
        assert done.stdout == "You said: \\x1b[31mred\n"


@pytest.fixture
def talking(hermes: Hermes) -> Iterator[tuple[OnThread, Terminal]]:
    """A person at a terminal, and the socket on the other side."""
    with socket_of(hermes) as socket, Terminal(hermes, *TALK) as terminal:
        terminal.until("Chat c1, user ada. /help lists commands, Ctrl-D leaves.")
        yield socket, terminal


Talking = tuple[OnThread, Terminal]


class TestTerminal:
    def test_reply_is_shown_above_the_prompt(self, talking: Talking) -> None:
        socket, terminal = talking
        terminal.enter("hello")
        (message_id,) = socket.until_seen(1)
        socket.run(socket.gateway.reply("reply:1", text="Good morning.", reply_to=message_id, answers=[message_id]))
        terminal.until("Good morning.").until_prompt()

    def test_preview_is_updated_in_place_and_replaced_by_the_answer(self, talking: Talking) -> None:
        socket, terminal = talking
        terminal.enter("tell me a story")
        socket.until_seen(1)
        socket.preview("reply:1", "Once upon")
        terminal.until("Once upon")
        socket.preview("reply:1", "Once upon a time")
        terminal.until("Once upon a time")
        assert terminal.text.count("Once upon") == 1
        socket.run(socket.gateway.reply("reply:1", text="Once upon a time, the end."))
        terminal.until("the end.").until_prompt()
        assert terminal.text.count("Once upon") == 1

    def test_reply_that_comes_again_is_shown_once(self, talking: Talking) -> None:
        socket, terminal = talking
        socket.run(socket.gateway.reply("reply:1", text="first"))
        terminal.until("first")
        socket.preview("reply:1", "a late preview of it")
        socket.run(socket.gateway.reply("reply:2", text="second"))
        terminal.until("second").until_prompt()
        assert (terminal.text.count("first"), terminal.text.count("late preview")) == (1, 0)

    def test_notice_and_refusal_are_marked(self, talking: Talking) -> None:
        socket, terminal = talking
        socket.run(socket.gateway.reply("notice:1", kind="notice", text="A new session has started."))
        terminal.until("[A new session has started.]")
        terminal.enter("refuse me")
        terminal.until("[Not accepted: Your 20 turns of today are used up.]")

    def test_ctrl_c_says_how_to_leave_and_ctrl_d_leaves(self, talking: Talking) -> None:
        _, terminal = talking
        terminal.until_prompt().type(CTRL_C)
        terminal.until("[Ctrl-D leaves; /stop ends a running turn.]")
        terminal.until_prompt().type(CTRL_D)
        terminal.process.wait()
        assert terminal.process.exitstatus == 0

    def test_control_characters_of_a_reply_are_shown_by_number(self, talking: Talking) -> None:
        socket, terminal = talking
        socket.run(socket.gateway.reply("reply:1", text="\x1b[31mred\x07"))
        terminal.until("\\x1b[31mred\\x07")


def test_person_keeps_talking_over_a_restart(hermes: Hermes) -> None:
    with gateway(hermes, "--node", "desk") as running, Terminal(hermes, *TALK) as terminal:
        terminal.enter("/title first talk")
        terminal.until("first talk")
        running.process.kill()
        running.wait()
        terminal.until("[The gateway is away; your messages are sent when it is back.]")
        terminal.enter("/status")
        with gateway(hermes, "--node", "desk"):
            terminal.until("[The gateway is back.]").until("Title: first talk")
            assert live(hermes)["clients"] == 1
