"""Nodes as processes, and messages that are put into their store from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.gateway.synthetic import inbound
from bench.job import READY
from bench.processes import ROOT
from hermes.gateway.engine.messages import encode_payload
from hermes.gateway.keys import build_session_key
from hermes.state.provider import SessionDBProvider

LIMIT_S = 120.0


class NodeProcess:
    """A node in a process."""

    def __init__(self, home: Path, name: str, turn_s: float | None) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.gateway.node", str(home), name, "-" if turn_s is None else str(turn_s)],
            env={**os.environ, "HERMES_HOME": str(home), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._began = began
        self.ready_s = 0.0
        """How long it took from the start of the process until the node was ready."""
        self.start_s = 0.0
        """How long the start of the node took in the process."""

    def wait_until_ready(self) -> None:
        """Return once the node works."""
        word, _, seconds = self._line().partition(" ")
        if word != READY:
            raise RuntimeError(f"a node printed {word!r} instead of {READY!r}")
        self.ready_s, self.start_s = time.perf_counter() - self._began, float(seconds)

    def command(self, name: str) -> dict[str, float]:
        """Let the node obey a command, and return what it has done."""
        self._write(f"{name}\n")
        result: dict[str, float] = json.loads(self._line())
        return result

    def stop(self) -> None:
        """Stop the node in order."""
        if self.process.poll() is None:
            self._write("stop\n")
        self.process.wait(LIMIT_S)

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()


@contextmanager
def running_nodes(homes: list[Path], turn_s: float | None) -> Iterator[list[NodeProcess]]:
    """Run a node for each home, which are all ready inside the block."""
    nodes = [NodeProcess(home, f"node-{number}", turn_s) for number, home in enumerate(homes)]
    try:
        for node in nodes:
            node.wait_until_ready()
        yield nodes
    finally:
        for node in nodes:
            if node.process.poll() is None:
                node.kill()


def put_message(store: SessionDBProvider, lane: int, number: int) -> str:
    """Store a message as an adapter does, and return the key of its lane."""
    message = inbound(lane, number)
    key = build_session_key(message.source)
    store.inbox.accept(
        key,
        encode_payload(message),
        platform=message.source.platform.value,
        chat_id=message.source.chat_id,
        message_id=message.message_id,
        delivery_id=message.delivery_id,
    )
    return key


def wait_for(condition: Callable[[], bool], what: str, pause_s: float = 0.01) -> None:
    """Return once a condition holds."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {LIMIT_S:g} s")
        time.sleep(pause_s)
