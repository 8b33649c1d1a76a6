"""A real gateway process for tests, and a client that talks to it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hermes.platforms.local.client import LocalClient, LocalMessage
from tests.cli.conftest import COMMAND, Hermes
from tests.support.modelserver import ModelServer, Received, Say
from tests.support.waiting import LIMIT_S, wait_until

READY = "Ctrl-C drains and stops it."


class Gateway:
    """A `hermes gateway run` process; stdout and stderr are read by threads."""

    def __init__(self, hermes: Hermes, *args: str, **variables: str) -> None:
        self.hermes = hermes
        # The guard makes a store call on the event loop an error.
        environment = hermes.environment(HERMES_LOOP_GUARD="1", **variables)
        self.process = subprocess.Popen(
            [*COMMAND, "gateway", "run", *args],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.output = ""
        self.errors = ""
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, "output"), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, "errors"), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, text: str, times: int = 1) -> Gateway:
        """Wait until it has written something."""
        wait_until(
            lambda: self.output.count(text) >= times or self.process.poll() is not None, f"{text!r} in the output"
        )
        assert self.output.count(text) >= times, f"it ended: {self.output}\n{self.errors}"
        return self

    def ready(self, times: int = 1) -> Gateway:
        return self.until(READY, times)

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(3 * LIMIT_S)
        for reader in self._readers:
            reader.join(LIMIT_S)
        return code

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()

    def _read(self, stream: Any, name: str) -> None:
        for line in stream:
            setattr(self, name, getattr(self, name) + line)
        stream.close()


@contextmanager
def gateway(hermes: Hermes, *args: str, **variables: str) -> Iterator[Gateway]:
    """Run a gateway that is ready, and kill it at the end if it still runs."""
    running = Gateway(hermes, *args, **variables)
    try:
        yield running.ready()
    finally:
        running.kill()


def configure(hermes: Hermes, text: str) -> None:
    """Write config.yaml."""
    hermes.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (hermes.home / "config.yaml").write_text(text)


class Gate:
    """A model whose answers wait until the gate is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked = threading.Event()

    def __call__(self, request: Received) -> Say:
        self.asked.set()
        self.open.wait(LIMIT_S)
        return Say(f"You said: {request.last_text}")


@contextmanager
def gated_model(hermes: Hermes, more: str = "") -> Iterator[Gate]:
    """A model server whose answers wait, and the configuration that uses it."""
    gate = Gate()
    with ModelServer(otherwise=gate) as server:
        configure(hermes, f"{server.config}agent: {{auto_title: false}}\n{more}")
        try:
            yield gate
        finally:
            gate.open.set()


def ask(hermes: Hermes, text: str, message_id: str = "m1", chat_id: str = "c1", user_id: str = "ada") -> LocalMessage:
    """Send a message and return the final answer."""

    async def talk() -> LocalMessage:
        async with asyncio.timeout(LIMIT_S), await LocalClient.connect(hermes.home) as client:
            await client.subscribe(chat_id)
            await client.say(text, chat_id, user_id, message_id=message_id)
            while True:
                message = await client.next()
                if message.final and message_id in (message.reply_to, *message.answers):
                    return message

    return asyncio.run(talk())


def send(hermes: Hermes, text: str, message_id: str = "m1", chat_id: str = "c1", user_id: str = "ada") -> str:
    """Send a message without waiting for its answer, and return what became of it."""

    async def talk() -> str:
        async with asyncio.timeout(LIMIT_S), await LocalClient.connect(hermes.home) as client:
            return (await client.say(text, chat_id, user_id, message_id=message_id)).state

    return asyncio.run(talk())


def answers(hermes: Hermes, count: int, chat_id: str = "c1") -> list[LocalMessage]:
    """Return the next final replies of a chat."""

    async def talk() -> list[LocalMessage]:
        found: list[LocalMessage] = []
        async with asyncio.timeout(LIMIT_S), await LocalClient.connect(hermes.home) as client:
            await client.subscribe(chat_id)
            while len(found) < count:
                message = await client.next()
                if message.final and message.type == "reply":
                    found.append(message)
        return found

    return asyncio.run(talk())


def status(hermes: Hermes) -> dict[str, Any]:
    """The state of the gateways."""
    item: dict[str, Any] = hermes.json("gateway", "status")["item"]
    return item


def live(hermes: Hermes) -> dict[str, Any]:
    """The figures of the only process."""
    (process,) = status(hermes)["processes"]
    figures: dict[str, Any] = process["live"]
    return figures


def explain(hermes: Hermes, *args: str) -> dict[str, Any]:
    """The life of a message."""
    done = hermes("gateway", "explain", *args, "--json")
    assert done.returncode == 0, done.stderr
    item: dict[str, Any] = json.loads(done.stdout)["item"]
    return item


def without_numbers(text: str) -> str:
    """Replace ids, times and durations, which differ in each run."""
    text = re.sub(r"\d{8}_\d{6}_[0-9a-f]{8}", "<session>", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", "<time>", text)
    return re.sub(r"\b\d+(\.\d)? (ms|s)\b", "<span>", text)
