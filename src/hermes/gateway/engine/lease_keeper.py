"""Keeps the lease of a lane while an actor works on it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from hermes.errors import StaleLease
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.state.asynchronous.lanes import AsyncTurns
    from hermes.state.lanes.types import Lease

_BEATS = 3
"""How often a lease is renewed in its own length."""


class LeaseKeeper:
    """Renews a lease until it is closed; `lost` is set when another node may have the lane."""

    def __init__(self, turns: AsyncTurns, lease: Lease, lease_s: float) -> None:
        self.lease = lease
        self.lost = asyncio.Event()
        self._turns = turns
        self._lease_s = lease_s
        self._task = asyncio.create_task(self._run(), name="hermes-lease")

    async def close(self) -> None:
        """Stop renewing."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        good_until = loop.time() + self._lease_s
        while True:
            await asyncio.sleep(self._lease_s / _BEATS)
            asked_at = loop.time()
            try:
                # After a pause of the whole process the lane may still be free: then the database is asked anyway.
                async with asyncio.timeout_at(max(good_until, asked_at + self._lease_s / _BEATS)):
                    await self._renew()
                good_until = asked_at + self._lease_s
            except StaleLease:
                self.lost.set()
                return
            except TimeoutError:
                warn(__name__, "the lease on %s ends: the database does not respond", self.lease.session_key)
                self.lost.set()
                return
            except Exception as error:  # noqa: BLE001 - whatever fails, a lease that ends must be known
                # The database may be back in time; until the lease ends no other node can have the lane.
                warn(__name__, "the lease on %s was not renewed: %s", self.lease.session_key, error)
            if loop.time() >= good_until:
                self.lost.set()
                return

    async def _renew(self) -> None:
        """Renew the lease; a renewal that is under way when the keeper closes finishes without a word.

        The end of a turn releases its lane, and a renewal that reaches the database just after it fails then. The log
        must not say that the lease was lost.
        """
        renewal = asyncio.ensure_future(self._turns.renew(self.lease, self._lease_s))
        try:
            await asyncio.shield(renewal)
        except asyncio.CancelledError:
            renewal.add_done_callback(_ignore_failure)
            raise


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return whether it was set in time."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def _ignore_failure(renewal: asyncio.Future[Lease]) -> None:
    """Mark the failure of a renewal as seen."""
    if not renewal.cancelled():
        renewal.exception()
