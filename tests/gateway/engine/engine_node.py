"""A node of the gateway without adapters: messages go in at the intake, and replies are read from the outbox."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes.config import Config
from hermes.gateway import AsyncSessionStore, GatewayConfig, Platform, SessionSource, SessionStore, build_session_key
from hermes.gateway.commands import BYPASS, STOPS, CommandRunner, CommandServices, parse_command
from hermes.gateway.engine.dispatcher import Dispatcher
from hermes.gateway.engine.intake import Intake
from hermes.gateway.engine.parts import EngineParts
from hermes.gateway.engine.ports import Admission, Inbound
from hermes.gateway.engine.settings import EngineSettings
from hermes.gateway.node.recovery import resume_lanes
from hermes.gateway.node.work_watch import ThreadedWatch
from hermes.gateway.people.access import Access
from hermes.gateway.people.limits import Limits
from hermes.gateway.upkeep.finalizing import Finalizer
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.types import InboxRow, LaneRow
from hermes.state.provider import SessionDBProvider
from tests.gateway.engine.scripted import LIMIT_S, ScriptedBrain
from tests.support.clock import FakeClock

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="1", user_name="Alice")
BOB = SessionSource(Platform.TELEGRAM, "2", user_id="2", user_name="Bob")

_numbers = itertools.count(1)


def in_group(user: str, name: str) -> SessionSource:
    """A user in the one group chat."""
    return SessionSource(Platform.TELEGRAM, "-9", chat_type="group", user_id=user, user_name=name)


GROUP_ALICE, GROUP_BOB, GROUP_CAROL = in_group("1", "Alice"), in_group("2", "Bob"), in_group("3", "Carol")


class EngineNode:
    """The engine of one node on a store that nodes share."""

    def __init__(
        self,
        home: Path,
        provider: SessionDBProvider,
        clock: FakeClock,
        *,
        name: str = "n1",
        config: Config | None = None,
        chats: GatewayConfig | None = None,
        has_processes: Callable[[str], bool] | None = None,
        **settings: Any,
    ) -> None:
        self.provider = provider
        self.clock = clock
        self.config = config or Config()
        self.chats = chats or GatewayConfig(sessions_dir=home / f"sessions-{name}", timezone="UTC")
        self.brain = ScriptedBrain(provider)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.restarts = 0
        self.db = AsyncSessionDB(provider)
        self.store = AsyncSessionStore(
            SessionStore(self.chats.sessions_dir, self.chats, has_processes, db=provider, clock=clock)
        )
        values: dict[str, Any] = {"lease_s": 5.0, "stop_grace_s": 0.2, "album_s": 0.15} | settings
        engine_settings = EngineSettings(node=name, holder=f"{name}/{next(_numbers):08x}", **values)
        limits = Limits(self.config.gateway.limits, self.db.quotas, self.chats.zone)
        finalizer = Finalizer(self.store, self.db, self.brain, self._emit, memory_s=5.0)
        services = CommandServices(
            store=self.store,
            db=self.db,
            brain=self.brain,
            config=self.config,
            gateway_config=self.chats,
            access=Access.of(self.config),
            now=clock,
            node=name,
            emit=self._emit,
            finalize=finalizer.finalize_session,
            restart=self._restart,
            limits=limits,
        )
        self.parts = EngineParts(
            settings=engine_settings,
            config=self.config,
            gateway_config=self.chats,
            db=self.db,
            store=self.store,
            brain=self.brain,
            clock=clock,
            run_command=CommandRunner(services),
            bypass=BYPASS,
            stops=STOPS,
            limits=limits,
            emit=self._emit,
            finalize=finalizer.finalize_session,
            has_processes=has_processes,
        )
        self.watch = ThreadedWatch(provider, engine_settings.holder)
        self.dispatcher = Dispatcher(self.parts, self.watch)
        self.intake = Intake(self.parts, parse_command)
        self.parts.arrived = self.dispatcher.arrived
        self.parts.commanded = self.dispatcher.commanded
        self.parts.is_full = self.dispatcher.is_full
        self._task: asyncio.Task[None] | None = None

    # --- life -------------------------------------------------------------------------------------------------------

    async def start(self) -> int:
        """Resume lanes and claim work; return how many lanes were resumed."""
        resumed = await resume_lanes(self.parts)
        self._task = asyncio.create_task(self.dispatcher.run())
        self.dispatcher.arrived("")
        return resumed

    async def stop(self) -> None:
        """Give up the turns that run, and stop."""
        self.parts.draining.set()
        self.dispatcher.stop()
        self.parts.expelled.set()
        assert await self.dispatcher.settle(LIMIT_S), "an actor does not end"
        if self._task is not None:
            await asyncio.wait_for(self._task, LIMIT_S)
            self._task = None
        await self.watch.close()

    # --- what users do ----------------------------------------------------------------------------------------------

    async def say(self, text: str, source: SessionSource = ALICE, **fields: Any) -> str:
        """Have a user send a message that is accepted, and return its uid."""
        admission = await self.send(text, source, **fields)
        assert admission.state == "accepted", admission
        return admission.uid

    async def send(self, text: str, source: SessionSource = ALICE, **fields: Any) -> Admission:
        """Have a user send a message."""
        return await self.intake.receive(Inbound(text, source, **{"message_id": f"m{next(_numbers)}"} | fields))

    async def say_all(self, *texts: str, source: SessionSource = ALICE) -> None:
        """Have a user send several messages."""
        for text in texts:
            await self.say(text, source)

    # --- what users see ---------------------------------------------------------------------------------------------

    async def outbox(self, source: SessionSource = ALICE) -> list[tuple[str, str]]:
        """The kind and the text of everything that a chat got, oldest first."""
        rows = await self.db.outbox.pending(limit=1000)
        return [
            (row["kind"], str((row["payload"] or {})["text"]))
            for row in sorted(rows, key=lambda row: row["id"])
            if (row["payload"] or {})["chat_id"] == source.chat_id
        ]

    async def texts(self, source: SessionSource = ALICE, kind: str | None = None) -> list[str]:
        """The texts that a chat got, of one kind or all."""
        return [text for each, text in await self.outbox(source) if kind in (None, each)]

    async def reply(self, count: int = 1, source: SessionSource = ALICE) -> str:
        """Wait until a chat has so many replies and notices, and return the last one."""
        await self.until(lambda: self._has_texts(count, source), f"{count} texts in the outbox")
        return (await self.texts(source))[count - 1]

    async def _has_texts(self, count: int, source: SessionSource) -> bool:
        return len(await self.texts(source)) >= count

    async def idle(self) -> None:
        """Wait until no message waits that can run, and no actor works."""

        async def is_idle() -> bool:
            totals = await self.db.inbox.totals()
            return not self.dispatcher.actors and totals.waiting == 0 and totals.leased == 0

        await self.until(is_idle, "the node is idle")

    async def until(self, is_so: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait until a condition is true."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LIMIT_S
        while not await is_so():
            assert loop.time() < deadline, f"waited in vain: {what}; outbox: {await self.outbox()}"
            await asyncio.sleep(0.01)

    async def seen(self, count: int, source: SessionSource = ALICE) -> None:
        """Wait until the actor of a lane has looked at so many messages since its last step."""
        key = self.key(source)

        async def has_seen() -> bool:
            actor = self.dispatcher.actors.get(key)
            return actor is not None and len(actor._seen) >= count

        await self.until(has_seen, f"{count} messages are seen")

    # --- what is stored ---------------------------------------------------------------------------------------------

    def key(self, source: SessionSource = ALICE) -> str:
        """The lane of a message."""
        return build_session_key(source, self.chats.group_sessions_per_user, self.chats.thread_sessions_per_user)

    async def lane(self, source: SessionSource = ALICE) -> LaneRow:
        """The lane of a user, which must exist."""
        row = await self.db.lanes.get(self.key(source))
        assert row is not None
        return row

    async def states(self, *uids: str) -> list[str]:
        """The states of messages."""
        return [(await self.message(uid))["state"] for uid in uids]

    async def message(self, uid: str) -> InboxRow:
        """A message of the inbox."""

        def find() -> InboxRow:
            for number in itertools.count(1):
                row = self.provider.inbox.get(number)
                assert row is not None, f"no message {uid}"
                if row["uid"] == uid:
                    return row
            raise AssertionError

        return await asyncio.to_thread(find)

    def event_names(self) -> list[str]:
        """The hooks that ran, in order."""
        return [name for name, _ in self.events]

    async def _emit(self, event: str, context: Mapping[str, Any]) -> None:
        self.events.append((event, dict(context)))

    def _restart(self) -> None:
        self.restarts += 1


Scenario = Callable[[EngineNode], Awaitable[None]]


@asynccontextmanager
async def running(node: EngineNode) -> AsyncIterator[EngineNode]:
    """Start a node, and stop it at the end."""
    try:
        await node.start()
        yield node
    finally:
        await node.stop()
        await node.store.close()


def with_limits(**limits: Any) -> Config:
    """A configuration with limits."""
    config = Config()
    gateway = replace(config.gateway, limits=replace(config.gateway.limits, **limits))
    return replace(config, gateway=gateway)


def shared_chats(home: Path, **fields: Any) -> GatewayConfig:
    """A configuration in which the users of a group share a session."""
    return GatewayConfig(sessions_dir=home / "sessions", timezone="UTC", group_sessions_per_user=False, **fields)


def texts_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The contents of stored messages."""
    return [str(row["content"]) for row in rows]
