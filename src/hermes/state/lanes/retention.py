"""Removing rows of ended messages and turns, in slices, so that no transaction is long."""

from __future__ import annotations

from functools import partial

from hermes.errors import InvalidValue
from hermes.state.engine import Engine, Reading, Transaction
from hermes.state.lanes.queue.queue_row import require_writable
from hermes.state.operations import placeholders
from hermes.state.rows import require_integer, require_number

SLICE = 500
DEAD_CONDITIONS = {"inbox": "AND is_open = 0 AND dead_at = 0", "outbox": "AND due_at = 0 AND dead_at = 0", "turns": ""}
"""Which ended rows may be removed: not those that wait for an operator."""


def sweep_rows(engine: Engine, table: str, created: str, older_than_s: float, limit: int) -> int:
    """Delete up to `limit` rows of a table that ended longer ago than `older_than_s`, and return how many.

    Ids follow time, so the search ends at the first row that is too young to have ended so long ago.
    """
    age, most = require_age(older_than_s), require_integer(limit, "limit")
    require_writable(engine)
    after = 0
    while True:
        page, old = engine.read(partial(_read_page, table=table, created=created, age=age, after=after))
        if old:
            return engine.write(partial(_delete, table=table, ids=old[:most]))
        if page is None:
            return 0
        after = page


def expire_dead(engine: Engine, table: str, older_than_s: float) -> int:
    """Give up rows that have waited for an operator for longer than this, in slices; return how many."""
    age, total = require_age(older_than_s), 0
    require_writable(engine)
    while ids := engine.read(partial(_read_dead, table=table, age=age)):
        total += engine.write(partial(_expire, table=table, ids=ids))
    return total


def require_age(value: float) -> float:
    """Return a number of seconds that is not negative."""
    age = require_number(value, "older_than_s")
    if age < 0:
        raise InvalidValue(f"older_than_s must not be negative: {age:g}")
    return age


def _read_page(tx: Reading, table: str, created: str, age: float, after: int) -> tuple[int | None, list[int]]:
    """Return the last id of a page (None: there is no next one), and the ids of the rows to delete."""
    cutoff = float(tx.value(f"SELECT {tx.dialect.now}")) - age
    ended = f"CASE WHEN finished_at <= :cutoff {DEAD_CONDITIONS[table]} THEN 1 ELSE 0 END"
    rows = tx.rows(
        f"SELECT id, {created}, {ended} FROM {table} WHERE id > :after ORDER BY id LIMIT :most",
        after=after,
        cutoff=cutoff,
        most=SLICE,
    )
    is_last = len(rows) < SLICE or rows[-1][1] > cutoff
    return (None if is_last else rows[-1][0]), [row[0] for row in rows if row[2]]


def _delete(tx: Transaction, table: str, ids: list[int]) -> int:
    # A row that an operator let wait again meanwhile stays.
    listed, values = placeholders("id", ids)
    return tx.run(
        f"DELETE FROM {table} WHERE id IN ({listed}) AND finished_at IS NOT NULL {DEAD_CONDITIONS[table]}", **values
    )


def _read_dead(tx: Reading, table: str, age: float) -> list[int]:
    cutoff = float(tx.value(f"SELECT {tx.dialect.now}")) - age
    rows = tx.rows(
        f"SELECT id FROM {table} WHERE dead_at > 0 AND dead_at <= :cutoff ORDER BY dead_at LIMIT :most",
        cutoff=cutoff,
        most=SLICE,
    )
    return [row[0] for row in rows]


def _expire(tx: Transaction, table: str, ids: list[int]) -> int:
    listed, values = placeholders("id", ids)
    return tx.run(f"UPDATE {table} SET payload = NULL, dead_at = 0 WHERE id IN ({listed}) AND dead_at > 0", **values)
