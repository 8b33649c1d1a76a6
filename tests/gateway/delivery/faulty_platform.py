"""A platform in memory that loses connections, limits rates and cannot always say what it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from hermes.gateway.delivery.sender import Sender, SenderSettings
from hermes.gateway.engine.ports import Adapter, Delivery, MaybeSent, NotSent, Receipt
from hermes.platforms.base import BaseAdapter, Part
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.types import Intent, OutboxRow
from hermes.state.loop_guard import guard_event_loop
from hermes_state import SessionDB
from tests.support.waiting import LIMIT_S

QUICK = SenderSettings(first_retry_s=0.005, poll_s=0.02, notice_delay_s=0.0)
KEY = "agent:main:faulty:dm:1"


@dataclass
class Platform:
    """What the platform has: texts by message id, and which idempotency keys were posted, in order."""

    texts: dict[str, str] = field(default_factory=dict)
    posted: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    edits: int = 0
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def post(self, part: Part) -> str:
        """Store a new message."""
        number = str(next(self._numbers))
        self.texts[number] = part.text
        self.posted.append(part.key)
        self.ids[part.key] = number
        return number

    def edit(self, number: str, text: str) -> None:
        """Replace the text of a message."""
        self.texts[number] = text
        self.edits += 1


class FaultyAdapter(BaseAdapter):
    """An adapter to that platform. Each call uses the next fault of a plan; afterwards all goes well."""

    platform = "faulty"
    can_edit = True

    def __init__(self, platform: Platform | None = None, faults: list[str] | None = None, *, can_tell: bool) -> None:
        super().__init__()
        self.server = platform or Platform()
        self.faults = faults or []
        self.can_tell = can_tell
        self.sending = asyncio.Event()
        self.gate: asyncio.Event | None = None
        self.running = self.most_running = 0
        self.order: list[str] = []

    async def send(self, delivery: Delivery) -> Receipt:
        """Send, and note how many messages are being sent at the same time."""
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        self.order.append(delivery.key)
        self.sending.set()
        try:
            return await super().send(delivery)
        finally:
            self.running -= 1

    async def post(self, part: Part) -> str:
        """Store a message, or fail as planned."""
        return await self._act(lambda: self.server.post(part))

    async def edit(self, message_id: str, part: Part) -> None:
        """Change a message, or fail as planned."""

        def change() -> str:
            self.server.edit(message_id, part.text)
            return message_id

        await self._act(change)

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Look the message up, if this platform can."""
        await asyncio.sleep(0)
        fault = self.faults.pop(0) if self.faults and self.faults[0].startswith("find") else ""
        if fault == "find fails":
            raise ConnectionError("down")
        if not self.can_tell:
            return None
        number = self.server.ids.get(delivery.key)
        if number is None:
            raise NotSent("the platform does not have it")
        return Receipt([number])

    async def _act(self, act: Any) -> str:
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        while self.faults and self.faults[0].startswith("find"):
            self.faults.pop(0)
        fault = self.faults.pop(0) if self.faults else "ok"
        if fault in ("ok", "lost after", "crash after", "hang after"):
            number: str = act()
            if fault == "ok":
                return number
        if fault.startswith("lost"):
            raise MaybeSent("the connection was lost")
        if fault.startswith("crash"):
            raise ZeroDivisionError("a mistake in the adapter")
        if fault.startswith("hang"):
            await asyncio.sleep(LIMIT_S)
        if fault == "limited":
            raise NotSent("too many messages", retry_after_s=0.01)
        if fault == "down":
            raise NotSent("the platform cannot be reached")
        raise NotSent("the chat does not exist", is_final=True)


FAULTS = ("ok", "lost before", "lost after", "crash before", "crash after", "limited", "down", "refused", "find fails")


def reply(key: str, *, lane: str | None = KEY, chat_id: str = "1", **options: Any) -> Intent:
    """A reply to a chat of that platform."""
    payload = {"chat_id": chat_id, "text": f"text of {key}", "thread_id": None, "reply_to": None, "chat_type": "dm"}
    return Intent(key, {**payload, **options.pop("payload", {})}, "faulty", session_key=lane, **options)


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test on an event loop that no call of the store blocks, with a limit."""

    async def limited() -> None:
        async with asyncio.timeout(3 * LIMIT_S):
            await test

    with guard_event_loop():
        asyncio.run(limited())


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[AsyncSessionDB]:
    """Open a store in a folder."""
    async with await AsyncSessionDB.open(lambda: SessionDB(folder / "state.db")) as db:
        yield db


@asynccontextmanager
async def sending(
    db: AsyncSessionDB, *adapters: Adapter, node: str = "n1/1", settings: SenderSettings = QUICK
) -> AsyncIterator[Sender]:
    """Run a sender with adapters."""
    connected: Mapping[tuple[str, str], Adapter] = {(each.platform, each.account): each for each in adapters}
    sender = Sender(db.outbox, connected, node, settings)
    task = asyncio.create_task(sender.run())
    try:
        yield sender
    finally:
        await sender.stop()
        await task


async def ended(db: AsyncSessionDB, *keys: str, limit_s: float = LIMIT_S) -> list[OutboxRow]:
    """Wait until messages have ended, and return them."""
    try:
        async with asyncio.timeout(limit_s):
            while True:
                rows = [await db.outbox.find(key) for key in keys]
                found = [row for row in rows if row is not None and row["state"] not in ("draft", "pending", "sending")]
                if len(found) == len(keys):
                    return found
                await asyncio.sleep(0.005)
    except TimeoutError:
        left = {row["key"]: row["state"] for row in await db.outbox.pending()}
        raise AssertionError(f"messages have not ended: {left}") from None


async def take_over(db: AsyncSessionDB) -> None:
    """Let the leases of all senders end now."""
    sql = "UPDATE outbox SET due_at = 1 WHERE state = 'sending'"
    await asyncio.to_thread(lambda: db.store._engine.write(lambda tx: tx.run(sql)))
