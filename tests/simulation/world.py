"""The world of the simulation: a database with virtual time, nodes that crash and freeze, and a faulty platform."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest

from hermes.config import Config
from hermes.errors import StaleLease, StoreUnavailable
from hermes.gateway.commands import BYPASS, STOPS, CommandRunner, CommandServices, parse_command
from hermes.gateway.config import GatewayConfig
from hermes.gateway.delivery.attempt import SenderSettings
from hermes.gateway.delivery.sender import Sender
from hermes.gateway.engine.dispatcher import Dispatcher
from hermes.gateway.engine.intake import Intake
from hermes.gateway.engine.parts import EngineParts
from hermes.gateway.engine.ports import (
    Admission,
    Delivery,
    Inbound,
    MaybeSent,
    NotSent,
    Receipt,
    Receive,
    TurnMessage,
    TurnRequest,
    TurnResult,
)
from hermes.gateway.engine.settings import BusyMode, EngineSettings
from hermes.gateway.node.recovery import mark_running, resume_lanes
from hermes.gateway.people.access import Access
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.gateway.store.aio import AsyncSessionStore
from hermes.gateway.store.session_store import SessionStore
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.provider import SessionDBProvider
from hermes.state.sqlite.connection import SqliteDialect

R = TypeVar("R")
LEASE_S = 10.0


class DatabaseClock:
    """The time of the database: virtual, as an SQL function."""

    def __init__(self, dialect: type[SqliteDialect], patch: pytest.MonkeyPatch) -> None:
        self.read: Callable[[], float] = lambda: 0.0
        patch.setattr(dialect, "now", "virtual_now()")
        patch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, self._add_function])

    def _add_function(self, connection: apsw.Connection) -> None:
        def virtual_now(*_: object) -> float:
            return self.read()

        connection.create_scalar_function("virtual_now", virtual_now, 0)


@dataclass
class Host:
    """The machine of a node: it can crash, freeze, and lose its database."""

    rng: random.Random
    is_dead: bool = False
    is_over: bool = False
    """Whether the story has ended: what still waits is cancelled."""
    frozen_until: float = 0.0
    is_cut_off: bool = False
    op_count: int = 0
    crash_at: int | None = None
    """Crash before or after this operation of the database."""

    async def run(self, work: Callable[[], R], *, is_read: bool = False) -> R:
        """Run an operation of the database after a delay; a crash can come before it or after it."""
        await self.step()
        self.op_count += 1
        is_last = self.op_count == self.crash_at
        if is_last and self.rng.random() < 0.5:
            self.is_dead = True
        await self.live()
        if self.is_cut_off:
            raise StoreUnavailable("the database cannot be reached")
        result = work()
        if is_last:
            self.is_dead = True
        await self.live()
        if self.rng.random() < 0.3:
            await self.step()
        return result

    async def step(self) -> None:
        """Let a little time pass."""
        if not self.is_over:
            await asyncio.sleep(self.rng.random() ** 3 * 0.02)
        await self.live()

    async def live(self) -> None:
        """Return if the machine works; wait while it is frozen, and for ever if it is dead."""
        loop = asyncio.get_running_loop()
        if self.is_over:
            raise asyncio.CancelledError
        while loop.time() < self.frozen_until:
            await asyncio.sleep(self.frozen_until - loop.time())
        if self.is_dead:
            await loop.create_future()


class SimulatedDB(AsyncSessionDB):
    """The store of a node; its operations run on the loop, one at a time."""

    def __init__(self, store: SessionDBProvider, host: Host) -> None:
        super().__init__(store)
        self._host = host

    async def _run_on(self, executor: Any, work: Callable[[], R], *, is_write: bool) -> R:
        return await self._host.run(work)


class SimulatedStore(AsyncSessionStore):
    """The lanes of a node; its operations run on the loop."""

    def __init__(self, store: SessionStore, host: Host) -> None:
        super().__init__(store)
        self._host = host

    async def _run(self, work: Callable[[], R]) -> R:
        return await self._host.run(work)


class NoExport:
    """Writes no sessions.json."""

    def mark(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@dataclass
class Run:
    """A turn as the agent has run it."""

    node: str
    key: str
    turn_id: str
    session_id: str
    uids: list[str]
    text: str = ""
    status: str = "running"


class SimulatedTurn:
    """A turn: it reads, writes its messages fenced, takes some steps and answers."""

    def __init__(self, brain: SimulatedBrain, request: TurnRequest) -> None:
        self.text = ""
        self.progress = 0
        self.activity = "thinking"
        self.active_at = asyncio.get_running_loop().time()
        self._brain = brain
        self._request = request
        self._is_cancelled = False
        self._steered: list[TurnMessage] | None = []
        self.run = Run(brain.node, request.session_key, request.turn_id, request.session_id, [])
        brain.world.runs.append(self.run)
        self._task = asyncio.create_task(self._work())

    async def result(self) -> TurnResult:
        """Wait for the end."""
        return await asyncio.shield(self._task)

    def cancel(self) -> None:
        """Stop at the next step."""
        self._is_cancelled = True

    def steer(self, message: TurnMessage) -> bool:
        """Take a message while the turn runs."""
        if self._steered is None:
            return False
        self._steered.append(message)
        return True

    async def _work(self) -> TurnResult:
        host, rng = self._brain.host, self._brain.host.rng
        request, world = self._request, self._brain.world
        try:
            await self._store(request.messages)
            known = await host.run(lambda: self._known_answer(request))
            if known is not None:
                self._steered = None
                return self._end("done", known)
            for _ in range(rng.randrange(1, 4)):
                await asyncio.sleep(rng.choice((0.01, 0.5, LEASE_S * 0.4)))
                if self._is_cancelled:
                    return self._end("interrupted")
                # A thread that wakes up in a process that was frozen takes a step before anything can cancel it.
                await host.live()
                self.active_at = asyncio.get_running_loop().time()
                self.progress += 1
                taken, self._steered = self._steered or [], []
                await self._store(taken)
            if rng.random() < world.faults.turn_errors:
                return self._end("failed")
            if rng.random() < world.faults.brain_bugs:
                raise RuntimeError("a bug")
            taken, self._steered = self._steered or [], None
            await self._store(taken)
            text = f"answer to {' '.join(self.run.uids)}"
            await self._append("assistant", text, f"answer:{request.turn_id}")
            return self._end("done", text)
        except StaleLease as error:
            return self._end("failed", error=error)
        finally:
            self._steered = None

    def _end(self, status: Any, text: str = "", error: Any = None) -> TurnResult:
        self.run.status, self.run.text = status, text
        untaken = [each.uid for each in self._steered or []]
        return TurnResult(status, text, self._request.session_id, error, tokens=10, untaken=untaken)

    async def _store(self, messages: Sequence[TurnMessage]) -> None:
        for each in messages:
            await self._append("user", each.text, each.uid)
            self.run.uids.append(each.uid)

    async def _append(self, role: str, content: str, uid: str) -> None:
        request = self._request
        view = self._brain.world.provider.for_owner(request.owner).fenced(request.lease)
        message = {"role": role, "content": content, "uid": uid}
        await self._brain.host.run(lambda: view.append_messages(request.session_id, [message]))

    def _known_answer(self, request: TurnRequest) -> str | None:
        view = self._brain.world.provider.for_owner(request.owner)
        rows = view.get_messages(request.session_id)
        uids = {each.uid for each in request.messages}
        if not uids:
            return None
        positions = [number for number, row in enumerate(rows) if row.get("uid") in uids]
        if len(positions) != len(uids):
            return None
        after = [row for row in rows[max(positions) + 1 :] if row["role"] == "assistant"]
        return str(after[0]["content"]) if after else None


class SimulatedBrain:
    """Runs simulated turns."""

    def __init__(self, world: World, host: Host, node: str) -> None:
        self.world = world
        self.host = host
        self.node = node

    def start(self, request: TurnRequest) -> SimulatedTurn:
        """Start a turn."""
        return SimulatedTurn(self, request)

    def forget(self, session_key: str) -> None:
        """Do nothing."""

    def set_model(self, session_key: str, name: str | None) -> None:
        """Do nothing."""

    def check_model(self, name: str) -> str:
        """Accept every name."""
        return name

    def model_of(self, session_key: str) -> str:
        """Return the one model."""
        return "simulated"

    async def work(self, *arguments: Any) -> Any:
        """Refuse: the simulation has no conversations."""
        raise StoreUnavailable("no conversations here")


@dataclass
class Sent:
    """A message that the platform has."""

    key: str
    text: str
    answers: Sequence[str]
    kind: str


class FaultyAdapter:
    """A platform that loses connections before and after it has stored a message."""

    platform = "telegram"
    account = ""
    delivers_itself = False
    can_edit = False
    needs_one_poller = False

    def __init__(self, world: World, host: Host) -> None:
        self._world = world
        self._host = host

    async def start(self, receive: Receive) -> None:
        """Do nothing: the world delivers."""

    async def stop(self) -> None:
        """Do nothing."""

    async def send(self, delivery: Delivery) -> Receipt:
        """Send, or fail before or after."""
        rng, faults = self._host.rng, self._world.faults
        await self._host.step()
        if rng.random() < faults.not_sent:
            raise NotSent("no connection", retry_after_s=0.5)
        self._world.platform.append(Sent(delivery.key, delivery.text, delivery.answers, delivery.kind))
        await self._host.live()
        if rng.random() < faults.maybe_sent:
            raise MaybeSent("connection lost")
        return Receipt(message_ids=(str(len(self._world.platform)),))

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Tell whether the platform has a message, if it can."""
        await self._host.step()
        if not self._world.faults.can_tell:
            return None
        if any(each.key == delivery.key for each in self._world.platform):
            return Receipt()
        raise NotSent("not there")

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Do nothing."""


class LaneLook:
    """Looks for work every now and then."""

    def __init__(self, db: SimulatedDB) -> None:
        self._db = db
        self._newest = 0

    async def wait(self, timeout_s: float) -> bool:
        """Return whether there is work after a while."""
        await asyncio.sleep(min(timeout_s, 1.0))
        seen = await self._db.turns.peek()
        is_new, self._newest = seen.newest_id != self._newest, seen.newest_id
        return is_new or seen.ready_id > 0 or 0 < seen.first_lease_until <= seen.now

    async def close(self) -> None:
        """Do nothing."""


@dataclass
class Faults:
    """How often things go wrong."""

    not_sent: float = 0.0
    maybe_sent: float = 0.0
    can_tell: bool = False
    turn_errors: float = 0.0
    brain_bugs: float = 0.0


@dataclass
class World:
    """Everything that the nodes share."""

    provider: SessionDBProvider
    directory: Path
    rng: random.Random
    mode: BusyMode
    faults: Faults
    prefix: str
    runs: list[Run] = field(default_factory=list)
    platform: list[Sent] = field(default_factory=list)
    accepted: dict[str, Inbound] = field(default_factory=dict)
    refused: list[tuple[str, Admission]] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    processes: list[Node] = field(default_factory=list)
    """All that were started, also dead ones."""
    starts: int = 0

    def end(self) -> None:
        """End the story for all processes, also for dead ones."""
        for process in self.processes:
            process.host.is_over = True

    def start_node(self, name: str, *, skew_s: float = 0.0) -> Node:
        """Start a process."""
        self.starts += 1
        node = Node(self, name, f"{name}/{self.prefix}{self.starts}", skew_s)
        self.nodes[name] = node
        return node


class Node:
    """A process of the gateway."""

    def __init__(self, world: World, name: str, holder: str, skew_s: float) -> None:
        self.host = Host(random.Random(world.rng.random()))
        world.processes.append(self)
        self.name = name
        self._world = world
        loop = asyncio.get_running_loop()
        self.db = SimulatedDB(world.provider, self.host)
        chats = GatewayConfig(sessions_dir=world.directory, group_sessions_per_user=False)
        store = SessionStore(
            world.directory, chats, db=world.provider, clock=lambda: loop.time() + skew_s, uses_files=False
        )
        store._exporter = NoExport()  # type: ignore[assignment]
        self.store = SimulatedStore(store, self.host)
        brain = SimulatedBrain(world, self.host, name)
        settings = EngineSettings(
            node=name,
            holder=holder,
            lease_s=LEASE_S,
            max_turns=4,
            mode=world.mode,
            stop_grace_s=2.0,
            drain_timeout_s=5.0,
        )
        config = Config()

        async def inline(function: Callable[[], R]) -> R:
            return await self.host.run(function)

        services = CommandServices(
            store=self.store,
            db=self.db,
            brain=brain,
            config=config,
            gateway_config=chats,
            access=Access((), ()),
            now=loop.time,
            run_blocking=inline,
        )
        self.parts = EngineParts(
            settings=settings,
            config=config,
            gateway_config=chats,
            db=self.db,
            store=self.store,
            brain=brain,
            clock=lambda: loop.time() + skew_s,
            run_command=CommandRunner(services),
            bypass=BYPASS,
            stops=STOPS,
        )
        self.dispatcher = Dispatcher(self.parts, LaneLook(self.db))
        self.parts.adapters["telegram", ""] = FaultyAdapter(world, self.host)
        self.sender = Sender(self.db.outbox, self.parts.adapters, holder, SenderSettings(), clock=loop.time)
        self.parts.arrived = self.dispatcher.arrived
        self.parts.commanded = self.dispatcher.commanded
        self.parts.is_full = self.dispatcher.is_full
        self.parts.delivered = self.sender.wake
        self.intake = Intake(self.parts, parse_command)
        self._tasks = [
            asyncio.create_task(self._start()),
            asyncio.create_task(self.dispatcher.run()),
            asyncio.create_task(self.sender.run()),
        ]

    async def _start(self) -> None:
        await resume_lanes(self.parts)
        self.dispatcher.arrived("")

    async def receive(self, inbound: Inbound) -> Admission:
        """Accept a message."""
        return await self.intake.receive(inbound)

    async def stop(self) -> None:
        """Drain and stop."""
        self.parts.draining.set()
        running = [key for key, actor in self.dispatcher.actors.items() if actor.turn is not None]
        await mark_running(self.parts, running, "shutdown_timeout")
        self.dispatcher.stop()
        await self.dispatcher.settle(self.parts.settings.drain_timeout_s)
        self.parts.expelled.set()
        await self.dispatcher.settle(self.parts.settings.stop_grace_s + 5)
        await self.sender.stop()
        self.host.is_dead = True

    def crash(self) -> None:
        """Kill the process."""
        self.host.is_dead = True


def source_of(prefix: str, chat: str, user: str) -> SessionSource:
    """Return the source of a message; a chat that begins with g is a group, which its users share."""
    is_group = chat.startswith("g")
    return SessionSource(
        Platform.TELEGRAM,
        f"{prefix}{chat}",
        chat_type="group" if is_group else "dm",
        user_id=user,
        user_name=user.upper(),
    )


def payload_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the payload of a row of the outbox."""
    return row["payload"] or {}
