"""Writes under the lease of a lane: after another node has the lane, nothing is stored.

A node that was frozen does not know that its lease has passed to another node. Therefore every transaction checks the
lease itself, and locks it until its commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.state.engine import Capability, Engine, Guard, Index, LaneListener, Maintenance, Reading, Transaction
from hermes.state.lanes.entries import Lanes
from hermes.state.lanes.identity import short_form
from hermes.state.lanes.queue.queue_row import require_lease, stale
from hermes.state.operations import Operations

if TYPE_CHECKING:
    from hermes.state.lanes.types import Lease
    from hermes.state.owner import Asker
    from hermes.state.rows import Row

T = TypeVar("T")

_HELD = "lane_id = :lane AND lease_holder = :node AND lease_token = :token"


def lease_guard(lease: Lease) -> Guard:
    """Return the guard of a lease, which counts like for operations on turns: until another node has the lane."""
    require_lease(lease)
    values = {"lane": short_form(lease.session_key), "node": lease.node, "token": lease.token}
    return Guard("lane_queues", _HELD, values, "fenced_writes", partial(stale, lease))


class FencedEngine:
    """An engine whose writes need a lease; without it they raise `StaleLease`. Reads need none."""

    spool = None
    """Messages are not spooled, because they would be stored later, without the lease."""

    def __init__(self, engine: Engine, lease: Lease) -> None:
        self._engine = engine
        self._guard = lease_guard(lease)
        self.name, self.read_only = engine.name, engine.read_only

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The features of the engine that not every engine has."""
        return self._engine.capabilities

    @property
    def index(self) -> Index:
        """The full-text index."""
        return self._engine.index

    @property
    def maintenance(self) -> Maintenance:
        """Maintenance operations: merge the index, compact, erase."""
        return self._engine.maintenance

    def read(self, work: Callable[[Reading], T], /) -> T:
        """Run `work` on a consistent view."""
        return self._engine.read(work)

    def write(self, work: Callable[[Transaction], T], /) -> T:
        """Run `work` in a transaction, after the check of the lease."""

        def fenced(tx: Transaction) -> T:
            tx.require(self._guard)
            return work(tx)

        return self._engine.write(fenced)

    def append_alone(
        self, session_id: str, values: Row, preview: str | None, asker: Asker, /, guards: Sequence[Guard] = ()
    ) -> int | None:
        """Store a message, after the check of the lease, and return its id; None if it needs several statements."""
        return self._engine.append_alone(session_id, values, preview, asker, guards=(self._guard, *guards))

    def heal_index(self, epoch: int, /) -> None:
        """Rebuild a damaged index in the background."""
        self._engine.heal_index(epoch)

    def add_telegram_topics(self) -> None:
        """Create the tables of Telegram topics; this changes no row."""
        self._engine.add_telegram_topics()

    def listen_lanes(self, node: str, /) -> LaneListener | None:
        """Return a listener for notifications about work in lanes."""
        return self._engine.listen_lanes(node)

    def describe(self) -> dict[str, Any]:
        """Return details about the engine for monitoring."""
        return self._engine.describe()

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def fenced_lanes(store: Operations, lease: Lease) -> Lanes:
    """Return operations on the lanes of a store whose writes raise `StaleLease` if another node has the lane by now."""
    lanes = Lanes()
    lanes._engine, lanes._clock = FencedEngine(store._engine, lease), store._clock
    return lanes
