"""Watches for sessions that have expired, and finalizes each once, on one node at a time."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from hermes.errors import HermesError, StaleLease, StoreError
from hermes.gateway.engine.lease_keeper import LeaseKeeper
from hermes.gateway.store.lane_entries import entry_from_row
from hermes.gateway.upkeep.finalizing import SESSION_EXPIRED
from hermes.log import inform, warn

if TYPE_CHECKING:
    from hermes.gateway.entry import SessionEntry
    from hermes.gateway.store.aio import AsyncSessionStore
    from hermes.gateway.upkeep.sweeps import Sweeps
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.lanes.types import ConnectorLease, LaneRow, Lease

Finalize = Callable[["SessionEntry", str, "Lease"], Awaitable[None]]

UPKEEP = "upkeep"
"""The connector lease of the node that does this work."""
HOLDER_SUFFIX = "+upkeep"
"""Ends the name under which the watcher leases lanes: a node does not take them for lanes of its own actors."""
FIRST_S = 60.0
EVERY_S = 300.0
PRUNE_EVERY_S = 3600.0
MAX_FAILURES = 3
PAGE = 100
PARALLEL = 4
"""How many sessions are finalized at the same time; each may ask the model."""


@dataclass(slots=True)
class PassReport:
    """What one pass has done."""

    is_in_charge: bool = False
    """Whether this node does the work that one node does for all."""
    is_cut: bool = False
    """Whether expired sessions are left, because the pass took long."""
    finalized: int = 0
    forced: int = 0
    """Sessions that were given up after three failures."""
    failures: int = 0
    skipped: int = 0
    """Lanes in which a turn runs, messages wait, or another node works."""
    pruned: int = 0
    evicted: int = 0
    """Conversations that were dropped from the cache of this node."""
    swept: dict[str, int] = field(default_factory=dict)


class ExpiryWatcher:
    """Finalizes expired sessions, drops idle conversations, and removes old lanes and rows."""

    def __init__(
        self,
        store: AsyncSessionStore,
        db: AsyncSessionDB,
        node: str,
        finalize: Finalize,
        *,
        lease_s: float = 30.0,
        first_s: float = FIRST_S,
        every_s: float = EVERY_S,
        max_age_days: int = 0,
        sweeps: Sweeps | None = None,
        sweep_cache: Callable[[], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.figures = {"passes": 0, "finalized": 0, "forced": 0, "failures": 0, "skipped": 0, "pruned": 0, "swept": 0}
        """Sums over all passes, for metrics."""
        self._store = store
        self._db = db
        self._node = node
        self._finalize = finalize
        self._lease_s = lease_s
        self._first_s = first_s
        self._every_s = every_s
        self._max_age_days = max_age_days
        self._sweeps = sweeps
        self._sweep_cache = sweep_cache
        self._clock = clock
        self._charge: ConnectorLease | None = None
        self._renewed_at = 0.0
        self._pruned_at: float | None = None

    async def run(self) -> None:
        """Run passes for ever; cancel the task to end it. A pass that fails is logged."""
        try:
            await asyncio.sleep(self._first_s)
            while True:
                report = PassReport()
                try:
                    report = await self.run_pass()
                except HermesError as error:
                    warn(__name__, "the search for expired sessions failed: %s", error)
                except Exception:  # noqa: BLE001  the next pass may succeed
                    warn(__name__, "the search for expired sessions failed:\n%s", traceback.format_exc())
                await asyncio.sleep(1.0 if report.is_cut else self._every_s)
        finally:
            await self._give_up_charge()

    async def run_pass(self) -> PassReport:
        """Do everything that is due now and return what was done."""
        report = PassReport()
        if self._sweep_cache is not None:
            report.evicted = self._sweep_cache()
        # Without work nothing is written, not even the lease: an idle gateway only reads.
        if await self._has_work():
            report.is_in_charge = await self._take_charge()
        if report.is_in_charge:
            try:
                await self._finalize_expired(report)
                await self._prune(report)
            finally:
                if not report.is_cut:
                    await self._give_up_charge()
        if self._sweeps is not None:
            report.swept = await self._sweeps.run()
        self._add_up(report)
        return report

    async def _has_work(self) -> bool:
        if self._charge is not None or self._is_prune_due():
            return True
        async for _ in self._expired():
            return True
        return False

    async def _take_charge(self) -> bool:
        """Return whether this node does the work for all nodes: it has the lease, or no node has it."""
        # A node that dies is replaced after two passes at most.
        lease_s = min(3600.0, max(60.0, 1.5 * self._every_s))
        try:
            if self._charge is not None:
                self._charge = await self._db.connectors.renew(self._charge, lease_s)
            elif await self._db.connectors.holder(UPKEEP) is None:
                self._charge = await self._db.connectors.acquire(UPKEEP, self._node, lease_s)
        except StaleLease:
            self._charge = None
        self._renewed_at = self._clock()
        return self._charge is not None

    async def _keep_charge(self) -> bool:
        """Renew the lease during a long pass; return False if another node has it."""
        if self._clock() - self._renewed_at < min(30.0, self._every_s / 4):
            return True
        return await self._take_charge()

    async def _give_up_charge(self) -> None:
        charge, self._charge = self._charge, None
        if charge is not None:
            with suppress(HermesError):
                await self._db.connectors.release(charge)

    async def _finalize_expired(self, report: PassReport) -> None:
        started, running = self._clock(), set[asyncio.Task[None]]()
        try:
            async for entry in self._expired():
                if len(running) >= PARALLEL:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    _raise_first(done)
                if self._clock() - started > self._every_s or not await self._keep_charge():
                    report.is_cut = True
                    break
                running.add(asyncio.create_task(self._visit(entry, report), name="hermes-finalize"))
            if running:
                done, running = await asyncio.wait(running)
                _raise_first(done)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        if report.finalized or report.forced:
            inform(__name__, "%d expired sessions were finalized", report.finalized + report.forced)

    async def _expired(self) -> AsyncIterator[SessionEntry]:
        """Yield the expired sessions, read in pages on a thread."""
        entries = self._store.store.expired_entries()
        while page := await asyncio.to_thread(lambda: list(islice(entries, PAGE))):
            for entry in page:
                # A session that continues after a restart has not ended.
                if entry.suspended or not entry.resume_pending:
                    yield entry

    async def _visit(self, entry: SessionEntry, report: PassReport) -> None:
        """Finalize a session under the lease of its lane, unless the lane is in use."""
        key, turns = entry.session_key, self._db.turns
        last = await turns.history(key, limit=1)
        # The lane of a dead node is left to the actors: they learn of its turn when they claim the lane.
        claim = None
        if not last or last[0]["state"] != "running":
            claim = await turns.acquire(key, f"{self._node}{HOLDER_SUFFIX}", self._lease_s)
        if claim is None:
            report.skipped += 1
            return
        keeper = LeaseKeeper(turns, claim.lease, self._lease_s)
        try:
            row = None if claim.waiting or claim.lost else await self._still_expired(entry)
            if row is None:
                report.skipped += 1
            else:
                await self._try(row, keeper, report)
        finally:
            await keeper.close()
            with suppress(StaleLease):
                await turns.release(keeper.lease)

    async def _still_expired(self, entry: SessionEntry) -> LaneRow | None:
        """Return the lane of an entry as it is now, if its session has still expired and is not finalized."""
        row = await self._db.lanes.get(entry.session_key)
        if row is None or row["session_id"] != entry.session_id or row["expiry_finalized"]:
            return None
        now = entry_from_row(row)
        is_expired = await asyncio.to_thread(self._store.store._is_session_expired, now)
        return row if is_expired else None

    async def _try(self, row: LaneRow, keeper: LeaseKeeper, report: PassReport) -> None:
        """Finalize a session; count a failure in its lane, and give up after three."""
        entry = entry_from_row(row)
        work = asyncio.ensure_future(self._finalize(entry, SESSION_EXPIRED, keeper.lease))
        lost = asyncio.ensure_future(keeper.lost.wait())
        try:
            await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise StaleLease(f"the lane {entry.session_key!r} was lost")
            work.result()
        except (StaleLease, StoreError) as error:
            # Not a failure of the session: another node has the lane, or the database is unavailable.
            report.skipped += 1
            warn(__name__, "the session %s was not finalized now: %s", entry.session_id, error)
        except Exception:  # noqa: BLE001  whatever it is, it must not be tried for ever
            report.failures += 1
            await self._count_failure(row, entry, report, traceback.format_exc())
        else:
            report.finalized += 1
            await self._store.set_expiry_finalized(entry)
            if row["expiry_failures"]:
                await self._db.lanes.update(entry.session_key, touch=False, expiry_failures=0)
        finally:
            for task in (work, lost):
                task.cancel()
            await asyncio.gather(work, lost, return_exceptions=True)

    async def _count_failure(self, row: LaneRow, entry: SessionEntry, report: PassReport, why: str) -> None:
        failures = row["expiry_failures"] + 1
        warn(__name__, "the session %s could not be finalized (%d of 3):\n%s", entry.session_id, failures, why)
        await self._db.lanes.update(entry.session_key, touch=False, expiry_failures=failures)
        if failures >= MAX_FAILURES:
            report.forced += 1
            await self._store.set_expiry_finalized(entry)
            warn(__name__, "the session %s counts as finalized after %d failures", entry.session_id, failures)

    async def _prune(self, report: PassReport) -> None:
        """Delete old lanes, once in an hour."""
        if not self._is_prune_due():
            return
        self._pruned_at = self._clock()
        report.pruned = await self._store.prune_old_entries(self._max_age_days)

    def _is_prune_due(self) -> bool:
        is_recent = self._pruned_at is not None and self._clock() - self._pruned_at < PRUNE_EVERY_S
        return self._max_age_days > 0 and not is_recent

    def _add_up(self, report: PassReport) -> None:
        self.figures["passes"] += 1
        for name in ("finalized", "forced", "failures", "skipped", "pruned"):
            self.figures[name] += getattr(report, name)
        self.figures["swept"] += sum(report.swept.values())


def _raise_first(done: set[asyncio.Task[None]]) -> None:
    """Raise the first error of finished tasks; the others are read too, so that asyncio does not report them."""
    errors = [error for task in done if (error := task.exception()) is not None]
    if errors:
        raise errors[0]
