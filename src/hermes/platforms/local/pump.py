"""Takes undelivered replies from the outbox to the clients that subscribed to their chats."""

from __future__ import annotations

import asyncio
from collections.abc import Set
from dataclasses import dataclass

from hermes.clock import Clock
from hermes.errors import StoreClosed
from hermes.gateway.delivery.receipts import delivery_of
from hermes.gateway.platform import Platform
from hermes.log import warn
from hermes.platforms.local.connection import Connection
from hermes.platforms.local.wire import delivery_line
from hermes.state.asynchronous.lanes import AsyncOutbox
from hermes.state.lanes.types import OutboxRow

LOCAL = str(Platform.LOCAL.value)
PAGE = 200
BYTES_AT_ONCE = 256 * 1024
LOOK_BACK = 1000
"""Messages with smaller ids than the newest one can appear later, because servers give out ids before the commit."""
_WHOLE_S = 5.0
"""How often all undelivered messages are read, if they are many: some are due later, some are retried."""
_WHOLE_SHARE = 20
"""At most one part in this many of the time is spent with that."""
_FAILURE_S = 1.0


@dataclass(slots=True)
class _Taker:
    """A connection during one pass, and the first message that it could not take."""

    connection: Connection
    epoch: int
    stopped_at: int | None = None

    @property
    def is_current(self) -> bool:
        return self.connection.is_open and self.connection.epoch == self.epoch


class Pump:
    """Pushes replies to clients, in the order of their ids; a client gets each once per subscription."""

    def __init__(
        self, outbox: AsyncOutbox, connections: Set[Connection], clock: Clock, poll_s: float, stall_s: float
    ) -> None:
        self._outbox = outbox
        self._connections = connections
        self._clock = clock
        self._poll_s = poll_s
        self._stall_s = stall_s
        self._wakeup = asyncio.Event()
        self._highest = 0
        self._whole_at = 0.0
        self._are_few = True
        self._stalled: dict[Connection, tuple[int, float]] = {}
        self._is_failing = False
        self._passing = asyncio.Lock()

    def wake(self) -> None:
        """Look for new replies now."""
        self._wakeup.set()

    async def run(self) -> None:
        """Push replies for ever. Without subscribers nothing is read."""
        while True:
            self._wakeup.clear()
            wait_s: float | None = self._poll_s
            try:
                await self.push_all()
                self._is_failing = False
            except StoreClosed:
                return
            except Exception as error:  # noqa: BLE001 - without it no client would get a reply
                if not self._is_failing:
                    warn(__name__, "replies cannot be read now: %s: %s", type(error).__name__, error)
                self._is_failing, wait_s = True, _FAILURE_S
            self._disconnect_stalled()
            if not any(each.chats for each in self._connections):
                wait_s = None
            try:
                async with asyncio.timeout(wait_s):
                    await self._wakeup.wait()
            except TimeoutError:
                continue

    async def push_all(self) -> None:
        """Push every undelivered reply that a subscriber has not got yet."""
        async with self._passing:
            await self._pass()

    async def _pass(self) -> None:
        takers = [_Taker(each, each.epoch) for each in self._connections if each.chats and each.can_take_replies]
        if not takers:
            return
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        is_whole = self._are_few or began_at >= self._whole_at
        floor = max(0, self._highest - LOOK_BACK)
        after = 0 if is_whole else min(floor, *(each.connection.position for each in takers))
        seen: set[str] = set()
        while True:
            rows = await self._outbox.awaiting(LOCAL, after=after, limit=PAGE)
            for row in rows:
                if self._offer(row, takers) >= BYTES_AT_ONCE:
                    await asyncio.sleep(0)  # others get their turn
                seen.add(row["key"])
            after = rows[-1]["id"] if rows else after
            if len(rows) < PAGE or all(each.stopped_at is not None or not each.is_current for each in takers):
                break
        self._highest = max(self._highest, after)
        is_complete = is_whole and len(rows) < PAGE
        for taker in takers:
            if taker.is_current:
                self._advance(taker, seen if is_complete else None)
        if is_complete:
            now = loop.time()
            self._whole_at = now + max(_WHOLE_S, _WHOLE_SHARE * (now - began_at))
        self._are_few = len(seen) < PAGE and (is_complete or self._are_few)

    def _offer(self, row: OutboxRow, takers: list[_Taker]) -> int:
        """Push a message to those that want it and can take it; return how many bytes these were."""
        if not self._is_due(row):
            return 0
        delivery, line, size = delivery_of(row), b"", 0
        for taker in takers:
            connection = taker.connection
            if taker.stopped_at is not None or not taker.is_current or not connection.wants(delivery.chat_id):
                continue
            if delivery.key in connection.pushed:
                continue
            if connection.can_take_replies:
                line = line or delivery_line(delivery)
                connection.push(row["id"], delivery, line)
                size += len(line)
            else:
                taker.stopped_at = row["id"]
        return size

    def _advance(self, taker: _Taker, undelivered: Set[str] | None) -> None:
        connection = taker.connection
        connection.position = self._highest if taker.stopped_at is None else taker.stopped_at - 1
        if undelivered is not None:
            pushed = connection.pushed
            connection.pushed = {key: pushed[key] for key in pushed.keys() & undelivered}

    def _is_due(self, row: OutboxRow) -> bool:
        return row["due_at"] <= row["created_at"] or row["state"] == "sending" or row["due_at"] <= self._clock()

    def _disconnect_stalled(self) -> None:
        """Disconnect clients that have read nothing for a while although much waits for them."""
        now = asyncio.get_running_loop().time()
        slow = {each: each.taken_bytes for each in self._connections if each.chats and not each.can_take_replies}
        for connection in list(self._stalled):
            if slow.get(connection) != self._stalled[connection][0]:
                del self._stalled[connection]
        for connection, taken in slow.items():
            _, since = self._stalled.setdefault(connection, (taken, now))
            if now - since > self._stall_s and connection.is_open:
                connection.abort(f"it has read nothing for {self._stall_s:g} s")
