"""Nodes as a test starts and ends them: in processes of their own, or on threads of the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from hermes.gateway.engine.ports import Adapter, Inbound
from hermes.gateway.node.runner import GatewayRunner
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.platforms.local.socket_file import SOCKET_NAME, address_of
from tests.gateway.reliability.model import PATIENCE_S
from tests.gateway.reliability.node import Node, Options, make_node, run_process
from tests.support.waiting import LIMIT_S, wait_until

T = TypeVar("T")

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.gateway.reliability.node"])


class NodeProcess:
    """A node in a process of its own."""

    def __init__(self, options: Options) -> None:
        self.home = options.home
        self._pipe, far = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=run_process, args=(options, far), daemon=True)
        self._process.start()
        far.close()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def first_line(self) -> str:
        """The first report of the process: `ready`, or why it refuses; empty if it died."""
        assert self._pipe.poll(PATIENCE_S), "a node says nothing"
        try:
            return str(self._pipe.recv())
        except EOFError:
            return ""

    def kill(self) -> None:
        """Kill the process like a crash."""
        self._process.kill()
        self._process.join(LIMIT_S)

    def says(self, text: str, chat_id: str, message_id: str) -> str:
        """Send a message on a connection of its own; return its state, `refused`, or an empty string without a node."""
        line = {"type": "message", "message_id": message_id, "chat_id": chat_id, "user_id": f"user of {chat_id}"}
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LIMIT_S)
            with address_of(self.home / SOCKET_NAME) as address:
                client.connect(address)
            client.sendall(json.dumps({**line, "text": text}).encode() + b"\n")
            with client.makefile("rb") as file:
                reply = file.readline()
            return str(json.loads(reply).get("state", "refused")) if reply else ""
        return ""

    def deliver_or_die(self, word: str, chat_id: str = "c1") -> str:
        """Send a message until the node has it or is dead, and return its state."""
        states = [""]

        def has_state() -> bool:
            states[0] = self.says(f"{word} please", chat_id, word)
            return bool(states[0]) or not self.is_alive

        wait_until(has_state, "a node to listen or to die", PATIENCE_S)
        return states[0]

    def deliver(self, word: str, chat_id: str = "c1") -> str:
        """Send a message as soon as the node listens, and return its state."""
        state = self.deliver_or_die(word, chat_id)
        assert state, "the node has died"
        return state

    def freeze(self) -> None:
        """Stop the process without telling it."""
        os.kill(self._process.pid or 0, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process continue."""
        os.kill(self._process.pid or 0, signal.SIGCONT)

    def counters(self) -> dict[str, int]:
        """The counters of the process."""
        self._pipe.send("counters")
        assert self._pipe.poll(PATIENCE_S), "a node says nothing"
        return dict(self._pipe.recv())

    def request_stop(self) -> None:
        """Let it drain and end."""
        self._pipe.send("stop")

    def wait(self) -> int | None:
        """Wait for the end of the process and return its exit code."""
        self._process.join(PATIENCE_S)
        return self._process.exitcode

    def stop(self) -> None:
        """Drain and end it."""
        self.request_stop()
        assert self.wait() == 0

    def close(self) -> None:
        """Kill it, if it runs."""
        if self.is_alive:
            self.thaw()
            self.kill()
        self._pipe.close()
        self._process.close()


class NodeThread:
    """A node on a thread of this process, for tests that look into it."""

    def __init__(self, options: Options, adapters: Callable[[GatewayRunner], Sequence[Adapter]] | None = None) -> None:
        self.home = options.home
        self.runner: Node
        self.error: BaseException | None = None
        self._options, self._adapters = options, adapters
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S), "a node does not start"

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine on the loop of the node and return its result."""
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(PATIENCE_S)

    def receive(self, word: str, chat_id: str = "c1", platform: str = "local", **more: Any) -> str:
        """Give a message to the node as an adapter does, and return what became of it."""
        source = SessionSource(Platform.from_stored(platform), chat_id, user_id=f"user of {chat_id}")
        inbound = Inbound(f"{word} please", source, message_id=word, **more)
        return self.call(lambda: self.runner.intake.receive(inbound)).state

    def drain(self) -> None:
        """Let it start no more turns."""
        self._loop.call_soon_threadsafe(self.runner.drain)

    async def undrain(self) -> None:
        """Let it start turns again."""
        self.runner.undrain()

    async def settle(self) -> None:
        """Wait until no turn runs and nothing is being sent."""
        while self.runner.dispatcher.actors or self.runner.sender.in_flight:
            await asyncio.sleep(0.01)

    def stop(self) -> None:
        """Drain and end it."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self.runner.request_stop)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "a node does not end"

    close = stop

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            self.runner = make_node(self._options, self._adapters)
            await self.runner.start()
            self._ready.set()
            await self.runner._stopping.wait()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        finally:
            await self.runner.stop()
            self._ready.set()
