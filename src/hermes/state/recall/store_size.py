"""How many messages and sessions a store has, or one of its owners: the measure of how rare a term is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from hermes.state.engine import Index, Reading
from hermes.state.operations import owner_condition
from hermes.state.owner import EVERYBODY
from hermes.state.search.context import SearchContext

LARGE, KEPT_S = 10_000, 60.0
"""A store with so many sessions counts them again after this time: to count 100 000 takes a server 4 ms, and a few
sessions more or less change no order. In a smaller store every search counts."""
_COUNTED = 1_000

_counts: WeakKeyDictionary[Index, tuple[float, int]] = WeakKeyDictionary()
"""When the sessions of a large store were counted, and how many there were, by the index of the store."""


@dataclass(frozen=True, slots=True)
class StoreSize:
    """About how many messages and sessions a scope has."""

    messages: float
    sessions: float

    @classmethod
    def read(cls, context: SearchContext) -> StoreSize:
        tx, asker = context.tx, context.scope.owner
        if asker is EVERYBODY:
            return cls(float(context.newest_id or 1), float(_count_sessions(tx, context.index) or 1))
        condition = owner_condition(asker)
        own = float(tx.value(f"SELECT COUNT(*) FROM sessions WHERE 1 = 1 {condition}", whose=asker.stored) or 1)
        counted, stored = tx.row(
            f"""SELECT COUNT(*), SUM(message_count)
                FROM (SELECT message_count FROM sessions WHERE 1 = 1 {condition} LIMIT {_COUNTED}) AS counted""",
            whose=asker.stored,
        ) or (0, 0)
        return cls(max(1.0, float(stored or 0) * own / max(1, counted)), own)


def _count_sessions(tx: Reading, index: Index) -> int:
    counted_at, count = _counts.get(index, (0.0, 0))
    now = time.monotonic()
    if count < LARGE or now - counted_at >= KEPT_S:
        count = int(tx.value("SELECT COUNT(*) FROM sessions") or 0)
        _counts[index] = now, count
    return count
