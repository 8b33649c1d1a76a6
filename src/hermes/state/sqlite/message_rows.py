"""Insert messages, and update their session, with as few statements and bound values as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import apsw

from hermes.state.operations import owner_condition
from hermes.state.sessions.records import activity_tick
from hermes.state.sql.binding import bind, bind_text

if TYPE_CHECKING:
    from hermes.state.owner import Asker

MAX_ROWS = 16
"""The most rows of one statement."""

_PLACES = {"active": "COALESCE(?, 1)", "observed": "COALESCE(?, 0)"}
"""The places of columns whose default is not NULL: another row of the same statement may have no value for them."""

Rows = Sequence[Mapping[str, Any]]


def add_plain(
    connection: apsw.Connection, session_id: str, rows: Rows, preview: str | None, calls: int, asker: Asker
) -> list[int] | None:
    """Add visible messages with new uids to a session, update its counters, and return the ids.

    Return None, and change nothing, if it has no messages yet, was active after these, or is a later part of a
    compression chain.
    """
    newest = rows[0]["timestamp"] if len(rows) == 1 else max(row["timestamp"] for row in rows)
    values = [bind_text(session_id), newest, activity_tick(newest), len(rows)]
    has_effects = calls != 0 or preview is not None
    if has_effects:
        values += (calls, preview and bind_text(preview))
    condition = owner_condition(asker)
    if ":whose" in condition:
        values.append(bind_text(asker.stored or ""))
    same_tick, new_tick = _updates(condition, has_effects=has_effects)
    connection.execute(same_tick, values)
    if connection.changes() == 0:
        connection.execute(new_tick, values)
        if connection.changes() == 0:
            return None
    return insert_messages(connection, [{"session_id": session_id, **row} for row in rows])


@lru_cache(maxsize=16)
def _updates(condition: str, *, has_effects: bool) -> tuple[str, str]:
    """Return the update of a session that was active in the same tick already, and the one for a new tick.

    An index entry that is written again, even unchanged, costs a page of the log.
    """
    effects = ", tool_call_count = tool_call_count + ?5, preview = COALESCE(preview, ?6)" if has_effects else ""
    whose = condition.replace(":whose", "?7" if has_effects else "?5")

    def update(tick: str, when: str) -> str:
        return f"""
            UPDATE sessions SET message_count = message_count + ?4, last_active = ?2,
                chain_active = MAX(chain_active, ?2) {tick} {effects}
            WHERE id = ?1 AND message_count > 0 AND chain_root IS NULL AND last_active <= ?2 AND {when} {whose}"""

    return update("", "active_tick = ?3"), update(", active_tick = ?3", "chain_active <= ?2")


def insert_messages(connection: apsw.Connection, rows: Rows) -> list[int]:
    """Insert messages, each with its own columns, and return their ids."""
    ids: list[int] = []
    start = 0
    while start < len(rows):
        count = min(MAX_ROWS, len(rows) - start)
        sql, values = _insert_with_values([bind(row) for row in rows[start : start + count]])
        connection.execute(sql, values)
        # The ids are consecutive: no other connection writes meanwhile, and SQLite gives out one after the other.
        newest = connection.last_insert_rowid()
        ids.extend(range(newest - count + 1, newest + 1))
        start += count
    return ids


def _insert_with_values(rows: Rows) -> tuple[str, list[Any]]:
    if len(rows) == 1:
        return _insert(tuple(rows[0]), 1), list(rows[0].values())
    columns = tuple(sorted(set().union(*rows)))  # sorted, so that few different statements are prepared
    values: list[Any] = []
    for row in rows:
        values += map(row.get, columns)
    return _insert(columns, len(rows)), values


@lru_cache(maxsize=256)
def _insert(columns: tuple[str, ...], rows: int) -> str:
    """Return an INSERT with only these columns, because each one costs time."""
    values = f"({', '.join(_PLACES.get(name, '?') for name in columns)})"
    return f"INSERT INTO messages ({', '.join(columns)}) VALUES {', '.join([values] * rows)}"
