"""Usage events of an imported session: inserted once, and their sums become its counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hermes.state.engine import Transaction
from hermes.state.rows import Row, optional_integer, session_row
from hermes.state.usage.counters import COSTS, COUNTERS

OPENING_KIND = "opening"
EVENT_COLUMNS = ("at", "kind", "model", "billing_provider", *COUNTERS, *COSTS)
"""The columns of an event, without its session."""

LEAST_COST = 1e-12
"""Costs are sums of fractions: a different order of addition may change them by this much."""


def reconcile_counters(counters: Row, events: Sequence[Row], opening: Row) -> tuple[Row, list[Row]]:
    """Return counters that agree with the events, and an opening event for the amounts that no event has."""
    sums = _sums(events)
    agreed = {name: sums[name] if counters.get(name) is None else counters[name] for name in sums}
    gap = {name: (agreed[name] or 0) - (sums[name] or 0) for name in sums}
    if not any(abs(difference) > LEAST_COST for difference in gap.values()):
        return agreed, []
    costs = {name: gap[name] or None for name in COSTS}
    return agreed, [{**opening, "kind": OPENING_KIND, **gap, **costs}]


def insert_events(tx: Transaction, session_id: str, events: Sequence[Row]) -> None:
    """Insert events; the caller updates the counters of their session."""
    columns = ("session_id", *EVENT_COLUMNS)
    tx.run_many(
        f"INSERT INTO usage_events ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})",
        [{"session_id": session_id, **each} for each in events],
    )


def insert_missing_events(tx: Transaction, session_id: str, events: Sequence[Row]) -> None:
    """Insert the events that are not stored yet, and add them to the counters."""
    missing = _missing_events(tx, session_id, events)
    if not missing:
        return
    insert_events(tx, session_id, missing)
    sums = {name: total for name, total in _sums(missing).items() if total}
    if sums:
        added = ", ".join(f"{name} = COALESCE({name}, 0) + :{name}" for name in sums)
        tx.run(f"UPDATE sessions SET {added} WHERE id = :id", id=session_id, **sums)


def _missing_events(tx: Transaction, session_id: str, events: Sequence[Row]) -> list[Row]:
    """Return the events that are not stored yet, or none if that is uncertain."""
    columns, rows = tx.table(
        f"SELECT {', '.join(EVENT_COLUMNS)} FROM usage_events WHERE session_id = :id ORDER BY id", id=session_id
    )
    stored = Counter(tuple(session_row(columns, row).values()) for row in rows)
    missing = []
    for each in events:
        key = tuple(each[name] for name in EVENT_COLUMNS)
        if stored[key] > 0:
            stored[key] -= 1
        else:
            missing.append(each)
    # An opening event sums up usage without details, perhaps of the very events that seem to be missing.
    is_doubtful = any(key[1] == OPENING_KIND and left > 0 for key, left in stored.items())
    return [] if is_doubtful else missing


def _sums(events: Sequence[Row]) -> Row:
    """Return the sums of events; a cost that none of them has is None."""
    sums: Row = {name: optional_integer(sum(each[name] for each in events), name) for name in COUNTERS}
    for name in COSTS:
        costs = [each[name] for each in events if each[name] is not None]
        sums[name] = sum(costs) if costs else None
    return sums
