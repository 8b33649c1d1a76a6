"""Bookings of tokens and costs that come with an imported session: taken over once, and the sum is its counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hermes.state.engine import Transaction
from hermes.state.rows import Row, optional_integer, session_row
from hermes.state.usage.counters import COSTS, COUNTERS

OPENING_KIND = "opening"
EVENT_COLUMNS = ("at", "kind", "model", "billing_provider", *COUNTERS, *COSTS)
"""What a booking says, besides whose it is."""

LEAST_COST = 1e-12
"""Costs are sums of fractions: two ways of adding them up may differ by so little."""


def reconcile_counters(counters: Row, events: Sequence[Row], opening: Row) -> tuple[Row, list[Row]]:
    """Counters that agree with events, and the booking, if any, of what is counted but was never booked."""
    sums = _sums(events)
    agreed = {name: sums[name] if counters.get(name) is None else counters[name] for name in sums}
    gap = {name: (agreed[name] or 0) - (sums[name] or 0) for name in sums}
    if not any(abs(difference) > LEAST_COST for difference in gap.values()):
        return agreed, []
    costs = {name: gap[name] or None for name in COSTS}
    return agreed, [{**opening, "kind": OPENING_KIND, **gap, **costs}]


def insert_events(tx: Transaction, session_id: str, events: Sequence[Row]) -> None:
    """Write events down; the counters of their session are left to the caller."""
    columns = ("session_id", *EVENT_COLUMNS)
    tx.run_many(
        f"INSERT INTO usage_events ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})",
        [{"session_id": session_id, **each} for each in events],
    )


def insert_missing_events(tx: Transaction, session_id: str, events: Sequence[Row]) -> None:
    """Book what has not been booked yet, and count it."""
    lacking = _missing_events(tx, session_id, events)
    if not lacking:
        return
    insert_events(tx, session_id, lacking)
    sums = {name: total for name, total in _sums(lacking).items() if total}
    if sums:
        added = ", ".join(f"{name} = COALESCE({name}, 0) + :{name}" for name in sums)
        tx.run(f"UPDATE sessions SET {added} WHERE id = :id", id=session_id, **sums)


def _missing_events(tx: Transaction, session_id: str, events: Sequence[Row]) -> list[Row]:
    """The events that are not here, or none if nobody can tell."""
    columns, rows = tx.table(
        f"SELECT {', '.join(EVENT_COLUMNS)} FROM usage_events WHERE session_id = :id ORDER BY id", id=session_id
    )
    here = Counter(tuple(session_row(columns, row).values()) for row in rows)
    lacking = []
    for each in events:
        told = tuple(each[name] for name in EVENT_COLUMNS)
        if here[told] > 0:
            here[told] -= 1
        else:
            lacking.append(each)
    # An opening booking stands for what nobody knows in detail: perhaps for the very ones that seem to be missing.
    is_doubtful = any(told[1] == OPENING_KIND and left > 0 for told, left in here.items())
    return [] if is_doubtful else lacking


def _sums(events: Sequence[Row]) -> Row:
    """What events amount to; a cost that none of them has is None."""
    sums: Row = {name: optional_integer(sum(each[name] for each in events), name) for name in COUNTERS}
    for name in COSTS:
        costs = [each[name] for each in events if each[name] is not None]
        sums[name] = sum(costs) if costs else None
    return sums
