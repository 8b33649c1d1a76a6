"""Removes rows of a gateway that are not needed any more, in slices, so that it delays no message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes.errors import HermesError
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.lanes.approvals import ApprovalRow

DAY_S = 86_400.0
PAUSE_S = 0.05
MAX_SLICES = 2_000
"""Of one kind in one pass; the rest waits for the next pass."""
QUOTA_DAYS = 62
"""How long the use of a day is kept: two months."""


class Sweeps:
    """Removes what ended longer ago than the time for which messages are recognized."""

    def __init__(
        self,
        db: AsyncSessionDB,
        *,
        dedupe_days: float,
        pause_s: float = PAUSE_S,
        on_expired: Callable[[ApprovalRow], Awaitable[None]] | None = None,
    ) -> None:
        self.on_expired = on_expired
        """Called for every request of a permission that was not decided in time."""
        self._db = db
        self._age_s = dedupe_days * DAY_S
        self._pause_s = pause_s
        self._untold: list[ApprovalRow] = []
        """Requests that have ended, for which `on_expired` was not called yet or has failed."""

    async def run(self) -> dict[str, int]:
        """Remove old messages, turns, replies, requests and quotas; return how many rows of each.

        Before that, requests that were not decided in time end.
        """
        db, age_s = self._db, self._age_s
        swept = {
            "expired approvals": await self._sweep("approvals", self._expire_approvals),
            "inbox": await self._sweep("inbox", lambda: db.inbox.sweep(age_s)),
            "turns": await self._sweep("turns", lambda: db.turns.sweep(age_s)),
            "outbox": await self._sweep("outbox", lambda: db.outbox.sweep(age_s)),
            "approvals": await self._sweep("approvals", lambda: db.approvals.sweep(age_s)),
        }
        before = (datetime.now(UTC) - timedelta(days=QUOTA_DAYS)).date().isoformat()
        swept["quotas"] = await self._sweep("quotas", lambda: db.quotas.sweep(before))
        return swept

    async def _expire_approvals(self) -> int:
        rows = await self._db.approvals.expire_due()
        if self.on_expired is None:
            return len(rows)
        waiting, self._untold = [*self._untold, *rows], []
        for row in waiting:
            try:
                await self.on_expired(row)
            except HermesError as error:
                warn(__name__, "the chat of the request %s does not know yet that it ended: %s", row["id"], error)
                if error.retryable:
                    self._untold.append(row)
        return len(rows)

    async def _sweep(self, name: str, remove: Callable[[], Awaitable[int]]) -> int:
        """Remove one kind of rows, slice by slice; a failure is logged and ends this kind only."""
        total = 0
        try:
            for _ in range(MAX_SLICES):
                removed = await remove()
                total += removed
                if not removed:
                    break
                await asyncio.sleep(self._pause_s)
        except HermesError as error:
            warn(__name__, "old rows of %s were not removed: %s", name, error)
        return total
