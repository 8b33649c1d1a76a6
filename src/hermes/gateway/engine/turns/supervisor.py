"""Watches one running turn: arrivals, timeouts, the lease, and the end of draining."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING

from hermes.errors import HermesError, StaleLease
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.gateway.engine.lease_keeper import LeaseKeeper
    from hermes.gateway.engine.parts import EngineParts
    from hermes.gateway.engine.ports import RunningTurn, TurnResult

PROGRESS_S = 1.0
"""Progress of a turn is stored at most this often."""
TYPING_S = 4.0


class Cause(Enum):
    """Why a turn was stopped."""

    INTERRUPT = "interrupt"
    STOP = "stop"
    IDLE = "idle"
    TOTAL = "total"
    DRAIN = "drain"
    STALE = "stale"


class TurnSupervisor:
    """Waits for the end of a turn, and stops it for a reason."""

    def __init__(
        self,
        parts: EngineParts,
        keeper: LeaseKeeper,
        mailbox: asyncio.Event,
        turn_id: str,
        running: RunningTurn,
        on_arrivals: Callable[[], Awaitable[Cause | None]],
        show_typing: Callable[[], Awaitable[None]] | None = None,
        on_long: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self.cause: Cause | None = None
        self.is_abandoned = False
        """Whether the turn did not end after it was stopped."""
        self._parts = parts
        self._keeper = keeper
        self._mailbox = mailbox
        self._turn_id = turn_id
        self._running = running
        self._on_arrivals = on_arrivals
        self._show_typing = show_typing
        self._on_long = on_long
        self._loop = asyncio.get_running_loop()
        self._started_at = self._loop.time()
        self._progress = 0
        self._progress_at = 0.0
        self._long_s = parts.settings.notify_s
        """After how long the chat learns that the turn still runs; each time twice as long as before."""

    async def wait(self) -> TurnResult | None:
        """Return the result of the turn; None if it was abandoned."""
        result = asyncio.ensure_future(self._running.result())
        events = [self._mailbox, self._keeper.lost, self._parts.expelled]
        waits = [asyncio.ensure_future(each.wait()) for each in events]
        typing = None if self._show_typing is None else asyncio.ensure_future(self._type())
        try:
            while not result.done():
                await asyncio.wait({result, *waits}, timeout=PROGRESS_S, return_when=asyncio.FIRST_COMPLETED)
                if waits[0].done():
                    self._mailbox.clear()
                    waits[0] = asyncio.ensure_future(self._mailbox.wait())
                    if not result.done():
                        self.cause = await self._look_at_arrivals()
                if result.done():
                    break
                self.cause = self.cause or self._reason_to_stop()
                if self.cause is not None:
                    self._running.cancel()
                    return await self._wait_for_end(result)
                await self._store_progress()
                await self._say_that_it_runs()
            return result.result()
        except StaleLease:
            self.cause = Cause.STALE
            self._running.cancel()
            return await self._wait_for_end(result)
        except Exception:
            self._running.cancel()  # no turn runs without a supervisor
            raise
        finally:
            for each in (*waits, *([] if typing is None else [typing])):
                each.cancel()
            if not result.done():
                result.cancel()

    async def _look_at_arrivals(self) -> Cause | None:
        """Return why messages that have arrived stop the turn; if the database cannot be read, look again later."""
        try:
            return await self._on_arrivals()
        except StaleLease:
            raise
        except HermesError as error:
            warn(__name__, "the messages that arrived during a turn were not read: %s", error)
            self._loop.call_later(PROGRESS_S, self._mailbox.set)
            return None

    def _reason_to_stop(self) -> Cause | None:
        settings, now = self._parts.settings, self._loop.time()
        if self._keeper.lost.is_set():
            return Cause.STALE
        if self._parts.expelled.is_set():
            return Cause.DRAIN
        if settings.total_timeout_s and now - self._started_at >= settings.total_timeout_s:
            return Cause.TOTAL
        if settings.idle_timeout_s and now - self._running.active_at >= settings.idle_timeout_s:
            return Cause.IDLE
        return None

    async def _wait_for_end(self, result: asyncio.Future[TurnResult]) -> TurnResult | None:
        """Wait for a stopped turn; its late writes are refused, because the lease's token has changed by then."""
        done, _ = await asyncio.wait({result}, timeout=self._parts.settings.stop_grace_s)
        if done:
            return result.result()
        self.is_abandoned = True
        self._parts.count("turns_abandoned")
        return None

    async def _store_progress(self) -> None:
        """Store that the turn advances, so that a crash does not count as a failed attempt."""
        progress = self._running.progress
        if progress == self._progress or self._loop.time() - self._progress_at < PROGRESS_S:
            return
        self._progress, self._progress_at = progress, self._loop.time()
        note = {"steps": progress, "activity": self._running.activity[:200]}
        try:
            await self._parts.db.turns.progress(self._keeper.lease, self._turn_id, note)
        except StaleLease:
            raise
        except HermesError as error:
            warn(__name__, "the progress of a turn was not stored: %s", error)

    async def _say_that_it_runs(self) -> None:
        """Let the chat know now and then that a long turn still runs."""
        seconds = self._loop.time() - self._started_at
        if self._on_long is None or not self._long_s or seconds < self._long_s:
            return
        self._long_s *= 2
        try:
            await self._on_long(seconds)
        except HermesError as error:
            warn(__name__, "the chat was not told that a turn still runs: %s", error)

    async def _type(self) -> None:
        assert self._show_typing is not None
        while True:
            await self._show_typing()
            await asyncio.sleep(TYPING_S)
