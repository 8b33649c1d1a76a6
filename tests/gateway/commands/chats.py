"""Chats of a gateway with a real store and the offline model, in which users send commands."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hermes.config import Config
from hermes.gateway import AsyncSessionStore, GatewayConfig, Platform, SessionSource, SessionStore, build_session_key
from hermes.gateway.agents.brain import AgentBrain
from hermes.gateway.commands import (
    CommandContext,
    CommandResult,
    CommandServices,
    Parsed,
    parse_command,
    run_command,
)
from hermes.gateway.commands.context import CommandBrain
from hermes.gateway.people.access import Access
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.types import InboxRow, LaneRow, Lease, MessageKind
from hermes.state.loop_guard import guard_event_loop
from hermes_state import SessionDB
from tests.support.clock import FakeClock

T = TypeVar("T")

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="1", user_name="Alice")
BOB = SessionSource(Platform.TELEGRAM, "2", user_id="2", user_name="Bob")
CAROL = SessionSource(Platform.TELEGRAM, "3", user_id="3", user_name="Carol")
ALICE_IN_GROUP = SessionSource(Platform.TELEGRAM, "-9", chat_type="group", user_id="1", user_name="Alice")
BOB_IN_GROUP = SessionSource(Platform.TELEGRAM, "-9", chat_type="group", user_id="2", user_name="Bob")

_numbers = itertools.count(1)


class Chats:
    """A gateway without an engine: each command is accepted, run under a lease, and settled."""

    def __init__(self, home: Path, config: Config, gateway_config: GatewayConfig) -> None:
        self.time = FakeClock()
        self.config = config
        self.gateway_config = gateway_config
        self.provider = SessionDB(home / "state.db", clock=self.time)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.restarts = 0
        self.brain = AgentBrain(self.provider, config, home, {}, model_name="offline", clock=self.time)
        brain: CommandBrain = self.brain
        self._runner = asyncio.Runner()
        self.db = AsyncSessionDB(self.provider)
        self.store = AsyncSessionStore(
            SessionStore(home / "sessions", gateway_config, db=self.provider, clock=self.time)
        )
        self.services = CommandServices(
            store=self.store,
            db=self.db,
            brain=brain,
            config=config,
            gateway_config=gateway_config,
            access=Access.of(config),
            now=self.time,
            node="node-1",
            emit=self._emit,
            restart=self._restart,
        )

    def close(self) -> None:
        """Close everything."""

        async def close() -> None:
            await self.brain.close(5)
            await self.store.close()
            await self.db.close()

        self._runner.run(close())
        self._runner.close()

    def run(self, work: Awaitable[T]) -> T:
        """Run a coroutine; store calls that would block the event loop raise."""

        async def guarded() -> T:
            return await work

        with guard_event_loop():
            return self._runner.run(guarded())

    def key(self, source: SessionSource) -> str:
        """The lane of a message."""
        settings = self.gateway_config
        return build_session_key(source, settings.group_sessions_per_user, settings.thread_sessions_per_user)

    def accept(self, source: SessionSource, text: str, kind: MessageKind = "normal") -> InboxRow:
        """Store a message in the inbox of its lane."""
        parsed = parse_command(text) if kind == "command" else None
        payload: dict[str, Any] = {"text": text, "source": source.to_dict(), "type": "text"}
        if parsed is not None:
            payload |= {"command": parsed.name, "args": parsed.args}
        accepted = self.provider.inbox.accept(
            self.key(source), payload, platform="telegram", delivery_id=f"d{next(_numbers)}", kind=kind
        )
        return accepted.message

    def send(self, source: SessionSource, text: str, **more: Any) -> CommandResult:
        """Have a user send a command, and return its result."""
        row = self.accept(source, text, "command")
        return self.run(self.obey(source, text, row, **more))

    def reply(self, source: SessionSource, text: str, **more: Any) -> str:
        """Have a user send a command, and return the text of its reply."""
        return self.send(source, text, **more).text

    async def obey(
        self,
        source: SessionSource,
        text: str,
        row: InboxRow,
        *,
        is_turn_running: bool = False,
        crashes: bool = False,
        services: CommandServices | None = None,
    ) -> CommandResult:
        """Run a stored command; with `crashes`, its message is not settled, so that it can run again."""
        parsed = parse_command(text)
        assert isinstance(parsed, Parsed), f"{text!r} is no command"
        lease = await self.lease(self.key(source))
        result = await run_command(self.context(source, parsed, row, lease, services, is_turn_running=is_turn_running))
        if not crashes:
            await self.db.turns.settle(lease, [row["id"]])
        await self.db.turns.release(lease)
        return result

    def context(
        self,
        source: SessionSource,
        parsed: Parsed,
        row: InboxRow,
        lease: Lease,
        services: CommandServices | None = None,
        *,
        is_turn_running: bool = False,
    ) -> CommandContext:
        """The context of a command."""
        return CommandContext(
            name=parsed.name,
            args=parsed.args,
            row=row,
            source=source,
            session_key=self.key(source),
            lease=lease,
            services=services or self.services,
            is_turn_running=is_turn_running,
        )

    async def lease(self, key: str, node: str = "node-1/1") -> Lease:
        """Lease a lane."""
        claim = await self.db.turns.acquire(key, node, 60.0)
        assert claim is not None
        return claim.lease

    def talk(self, source: SessionSource, *questions: str) -> str:
        """Have a user talk, without a model, and return the session."""
        entry = self.run(self.store.get_or_create_session(source))
        for question in questions:
            for role, text in (("user", question), ("assistant", f"answer to {question}")):
                self.provider.append_message(entry.session_id, role=role, content=text)
        self.run(self.store.update_session(entry.session_key))
        return entry.session_id

    def lane(self, source: SessionSource) -> LaneRow:
        """The lane of a user, which must exist."""
        row = self.provider.lanes.get(self.key(source))
        assert row is not None
        return row

    def session(self, source: SessionSource) -> str:
        """The session of a user's lane."""
        return self.lane(source)["session_id"]

    def texts(self, session_id: str) -> list[str]:
        """The messages of a session that were not undone."""
        return [str(row["content"]) for row in self.provider.get_messages(session_id)]

    def with_services(self, **changes: Any) -> CommandServices:
        """The services with some of them changed."""
        return replace(self.services, **changes)

    async def _emit(self, event: str, context: Mapping[str, Any]) -> None:
        self.events.append((event, dict(context)))

    def _restart(self) -> None:
        self.restarts += 1


MakeChats = Callable[..., Chats]
