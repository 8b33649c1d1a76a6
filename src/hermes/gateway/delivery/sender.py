"""The sender of a node: it takes messages from the outbox, sends them, and records what became of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from hermes.clock import Clock, system_clock
from hermes.errors import HermesError, StaleLease, StoreClosed
from hermes.gateway.delivery.attempt import Failed, Left, Outcome, SenderSettings, Sent, Unknown, attempt
from hermes.gateway.delivery.receipts import partial_payload, receipt_payload
from hermes.gateway.delivery.undelivered import Undelivered
from hermes.gateway.engine.outage import Outage
from hermes.gateway.engine.ports import Adapter
from hermes.log import warn
from hermes.state.asynchronous.lanes import AsyncOutbox
from hermes.state.lanes.types import OutboxRow

__all__ = ["Sender", "SenderSettings"]

_SOON_S = 0.05
"""The first pause when messages are due that this node cannot take; the following ones are longer."""


class Sender:
    """Sends the messages of the outbox through the adapters of this node, those of a lane in order."""

    def __init__(
        self,
        outbox: AsyncOutbox,
        adapters: Mapping[tuple[str, str], Adapter],
        node: str,
        settings: SenderSettings | None = None,
        clock: Clock = system_clock,
    ) -> None:
        """Create a sender. `adapters` are the connected ones by platform and account; they may change at any time."""
        self.counters: Counter[str] = Counter()
        self._outbox = outbox
        self._adapters = adapters
        self._node = node
        self._settings = settings or SenderSettings()
        self._undelivered = Undelivered(outbox, ttl_s=self._settings.reply_ttl_s, zone=self._settings.zone, clock=clock)
        self._tasks: set[asyncio.Task[None]] = set()
        self._wakeup = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()
        self._is_stopping = False
        self._looked_for_expired_at = float("-inf")
        self._turn = 0
        self._outage = Outage(__name__, "the outbox could not be read")

    @property
    def in_flight(self) -> int:
        """How many messages are being sent now."""
        return len(self._tasks)

    def wake(self) -> None:
        """Look for messages now, because this node has stored one."""
        self._wakeup.set()

    async def undelivered_notices(self, session_key: str) -> int:
        """Store notices about the undelivered replies of a lane whose chat is active again; return how many."""
        count = await self._undelivered.notices(session_key)
        if count:
            self.wake()
        return count

    async def run(self) -> None:
        """Send messages until `stop` is called."""
        self._ended.clear()
        pause_s = _SOON_S
        try:
            while not self._is_stopping:
                self._wakeup.clear()
                try:
                    wait_s = await self._work()
                    self._outage.worked()
                except StoreClosed:
                    return
                except Exception as error:  # noqa: BLE001 - without a sender no chat would get anything
                    self._outage.failed(error)
                    wait_s = self._settings.poll_s
                pause_s = min(2 * pause_s, self._settings.poll_s) if wait_s == 0 else _SOON_S
                was_woken = await self._sleep(wait_s or pause_s)
                pause_s = _SOON_S if was_woken else pause_s
        finally:
            self._ended.set()

    async def stop(self, timeout_s: float = 10.0) -> int:
        """Take no more messages, and wait for those that are being sent; return how many took too long.

        These stay marked as being sent; when their leases end, a node asks the platform about them.
        """
        self._is_stopping = True
        self._wakeup.set()
        await self._ended.wait()
        if not self._tasks:
            return 0
        _, late = await asyncio.wait(self._tasks, timeout=timeout_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        return len(late)

    async def _work(self) -> float:
        """Take the messages that are due, and return after how long to look again; 0 if another node may have them."""
        settings = self._settings
        await self._let_expire()
        adapters = [each for each in list(self._adapters.values()) if not each.delivers_itself]
        free = settings.concurrency - len(self._tasks)
        if not adapters or free <= 0:
            return settings.poll_s
        due_s = await self._outbox.next_due(sorted({each.platform for each in adapters}))
        if due_s is None or due_s > 0:
            return settings.poll_s if due_s is None else min(due_s, settings.poll_s)
        self._turn += 1
        first = self._turn % len(adapters)  # so that a busy platform does not hold the others back
        taken = 0
        for adapter in adapters[first:] + adapters[:first]:
            if taken < free:
                taken += await self._take(adapter, free - taken)
        return settings.poll_s if taken else 0.0

    async def _take(self, adapter: Adapter, limit: int) -> int:
        taken_at = asyncio.get_running_loop().time()
        taking = asyncio.ensure_future(
            self._outbox.sending(
                self._node,
                self._settings.lease_s,
                platform=adapter.platform,
                account=adapter.account,
                limit=limit,
            )
        )
        try:
            rows = await asyncio.shield(taking)
        except asyncio.CancelledError:
            for row in await taking:
                if not row["was_sending"]:  # else an earlier node may have sent it, and a later one asks
                    await self._record(row, Failed("the node stopped before it was sent"), taken_at)
            raise
        for row in rows:
            task = asyncio.create_task(self._send(adapter, row, taken_at), name=f"send {row['key']}")
            self._tasks.add(task)
            task.add_done_callback(self._forget)
        return len(rows)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wakeup.set()  # a slot is free, and the next message of the lane may be due
        if not task.cancelled() and (error := task.exception()) is not None:
            warn(__name__, "%s failed: %r", task.get_name(), error)

    async def _send(self, adapter: Adapter, row: OutboxRow, taken_at: float) -> None:
        await self._record(row, await attempt(adapter, row, self._settings, taken_at), taken_at)

    async def _record(self, row: OutboxRow, outcome: Outcome, taken_at: float) -> None:
        """Record the result of an attempt; store errors are retried until the lease ends."""
        number, fence, settings = row["id"], row["attempts"], self._settings
        ended: OutboxRow | None = None
        try:
            match outcome:
                case Sent(receipt):
                    await self._persist(lambda: self._outbox.sent(number, fence, receipt_payload(receipt)), taken_at)
                    self.counters["sent"] += 1
                case Failed(reason, delay_s, is_last, finished_ids):
                    if finished_ids is not None:
                        partial = partial_payload(row["receipt"], finished_ids)
                        await self._persist(lambda: self._outbox.preview(number, partial), taken_at)
                    most = fence if is_last else max(fence + 1, settings.max_attempts)
                    await self._persist(
                        lambda: self._outbox.failed(number, fence, reason, delay_seconds=delay_s, max_attempts=most),
                        taken_at,
                    )
                    self.counters["dead" if is_last else "failed"] += 1
                    ended = {**row, "state": "dead", "reason": reason} if is_last else None
                case Unknown(reason):
                    await self._persist(lambda: self._outbox.unknown(number, fence, reason), taken_at)
                    self.counters["unknown"] += 1
                    ended = {**row, "state": "unknown", "reason": reason}
                case Left(reason):
                    warn(__name__, "message %s is left until its lease ends: %s", row["key"], reason)
            if ended is not None:
                await self._notify(ended, taken_at)
        except StaleLease as error:
            self.counters["stale"] += 1
            warn(__name__, "a late result of message %s is ignored: %s", row["key"], error)
        except HermesError as error:
            warn(__name__, "the result of message %s could not be stored: %s", row["key"], error)

    async def _notify(self, row: OutboxRow, taken_at: float) -> None:
        warn(__name__, "message %s was not delivered (%s): %s", row["key"], row["state"], row["reason"])
        notice = self._undelivered.about(row, delay_s=self._settings.notice_delay_s)
        if notice is not None:
            await self._persist(lambda: self._outbox.intend(notice), taken_at)

    async def _persist(self, write: Callable[[], Awaitable[object]], taken_at: float) -> None:
        """Write to the store, again after an error that may pass, while the lease lasts."""
        loop, pause_s = asyncio.get_running_loop(), 0.1
        while True:
            try:
                await write()
                return
            except HermesError as error:
                if not error.retryable or loop.time() + pause_s > taken_at + self._settings.lease_s:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 5.0)

    async def _let_expire(self) -> None:
        """End the messages whose time has run out, also those of platforms that no node is connected to."""
        now = asyncio.get_running_loop().time()
        if now < self._looked_for_expired_at + self._settings.expiry_s:
            return
        self._looked_for_expired_at = now
        for row in await self._outbox.expire_due():
            self.counters[row["state"]] += 1
            warn(__name__, "message %s was not delivered: %s", row["key"], row["reason"])

    async def _sleep(self, seconds: float) -> bool:
        """Wait until `wake` is called, but not longer than this; return whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._wakeup.wait()
        except TimeoutError:
            return False
        return True
