"""A gateway for the tests of this folder: in a process that can be killed, or on a thread of the test."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hermes.agent.tools.registry import Registry, tool
from hermes.agent.tools.shell.terminal import terminal
from hermes.clock import system_clock
from hermes.errors import HermesError
from hermes.gateway.agents.brain import AgentBrain
from hermes.gateway.engine.ports import Adapter
from hermes.gateway.engine.turns import supervisor
from hermes.gateway.node.runner import GatewayRunner
from hermes.platforms.base import Part
from hermes.platforms.local import LocalAdapter
from hermes.platforms.local.adapter import LocalSettings
from hermes.state.lanes.queue.inbox import Inbox
from hermes.state.lanes.queue.turns import Turns
from tests.gateway.delivery.file_platform import FileAdapter

QUICK = LocalSettings(poll_s=0.05, retry_s=0.05)
NOTES = "notes.txt"


@dataclass(frozen=True)
class Options:
    """How a node is started."""

    home: Path
    node: str = "north"
    clock_ahead_s: float = 0.0
    dies_at_finish: bool = False
    """Whether the process kills itself when an answer is stored, before the end of the turn is."""
    dies_at_accept: bool = False
    """Whether the process kills itself when a message is stored, before the commit."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Changed settings of the engine."""
    platform_file: Path | None = None
    """The messages of a platform in a file; None: no such platform."""
    platform_dies: str = "never"
    platform_can_tell: bool = False
    platform_can_edit: bool = False


@tool(toolset="test")
def note(text: str) -> str:
    """Write a line into the notes of the home."""
    _write(text)
    return f"noted {text}"


@tool(toolset="test")
def die(text: str) -> str:
    """Write a line into the notes and kill the process."""
    _write(text)
    os.kill(os.getpid(), signal.SIGKILL)
    return "not reached"


@tool(toolset="test")
def stick() -> str:
    """Wait for the end of the test, whatever is cancelled."""
    RELEASED.wait(60)
    return "released"


RELEASED = threading.Event()
"""Ends the calls of `stick` in this process."""
TOOLS = Registry([note, die, stick, terminal])


class Node(GatewayRunner):
    """A gateway with the tools of the tests."""

    def _make_brain(self) -> AgentBrain:
        brain = super()._make_brain()
        brain.agent.tools = TOOLS
        return brain


class EditableFile(FileAdapter):
    """The platform in a file, with texts that can be changed: each line is a JSON list of an id and a text."""

    can_edit = True

    async def post(self, part: Part) -> str:
        """Write the message down under a new id."""
        number = str(len(read_texts(self._file)) + 1)
        await self.edit(number, part)
        return number

    async def edit(self, message_id: str, part: Part) -> None:
        """Write the new text of a message down."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps([message_id, part.text]) + "\n")


def read_texts(file: Path) -> dict[str, str]:
    """The texts that the platform in a file shows, by id."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return dict(json.loads(line) for line in lines)


def _platform(options: Options, file: Path) -> FileAdapter:
    make = EditableFile if options.platform_can_edit else FileAdapter
    return make(file, can_tell=options.platform_can_tell, dies=options.platform_dies)


def make_node(options: Options, adapters: Callable[[GatewayRunner], Sequence[Adapter]] | None = None) -> Node:
    """Make a gateway that listens on the local socket, and on the platform in a file."""

    def make_adapters(runner: GatewayRunner) -> list[Adapter]:
        found: list[Adapter] = [LocalAdapter(options.home, runner.db.outbox, node=runner.settings.node, settings=QUICK)]
        if options.platform_file is not None:
            found.append(_platform(options, options.platform_file))
        return [*found, *([] if adapters is None else adapters(runner))]

    node = Node(
        home=options.home,
        node=options.node,
        adapters=make_adapters,
        clock=lambda: system_clock() + options.clock_ahead_s,
    )
    node.settings = replace(node.settings, **options.settings)
    return node


def run_process(options: Options, pipe: Connection) -> None:
    """Run a node in this process until the test says `stop` or ends."""
    os.environ["HERMES_HOME"] = str(options.home)
    supervisor.PROGRESS_S = 0.05
    if options.dies_at_finish:
        Turns.finish = _die_instead  # type: ignore[method-assign]
    if options.dies_at_accept:
        _die_in_the_transaction_of_accept()
    asyncio.run(_serve(options, pipe))


async def _serve(options: Options, pipe: Connection) -> None:
    stopping = asyncio.Event()
    node = make_node(options)

    def obey() -> None:
        try:
            command = pipe.recv()
        except EOFError:
            os._exit(1)
        if command == "counters":
            pipe.send(node.parts.counters)
        else:
            stopping.set()

    asyncio.get_running_loop().add_reader(pipe.fileno(), obey)
    try:
        await node.start()
        pipe.send("ready")
        await stopping.wait()
    except HermesError as error:
        pipe.send(f"{error.code}: {error.message}")
    finally:
        await node.stop()


def _die_instead(*_: object, **__: object) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def _die_in_the_transaction_of_accept() -> None:
    accept: Callable[..., Any] = Inbox.accept

    def accept_and_die(inbox: Inbox, *args: Any, **kwargs: Any) -> Any:
        engine: Any = inbox._engine
        write = engine.write

        def work_and_die(work: Callable[[Any], object]) -> Any:
            def inside(tx: Any) -> Any:
                work(tx)
                return _die_instead()

            return write(inside)

        engine.write = work_and_die
        return accept(inbox, *args, **kwargs)

    setattr(Inbox, "accept", accept_and_die)  # noqa: B010 - a method


def _write(text: str) -> None:
    with open(Path(os.environ["HERMES_HOME"]) / NOTES, "a", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
