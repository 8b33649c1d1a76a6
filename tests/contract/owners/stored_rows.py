"""The stored rows of sessions, to compare them before and after a call."""

from __future__ import annotations

from typing import Any

from hermes.state.operations import read
from hermes.state.provider import SessionDBProvider

TABLES = {
    "sessions": "id",
    "messages": "session_id",
    "rewinds": "session_id",
    "session_tools": "session_id",
    "usage_events": "session_id",
    "compression_locks": "session_id",
}


def rows_of(store: SessionDBProvider, *session_ids: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return all stored rows of some sessions."""
    listed = ", ".join(f"'{each}'" for each in session_ids)

    def dump(tx: Any) -> dict[str, list[tuple[Any, ...]]]:
        return {
            table: sorted(tx.rows(f"SELECT * FROM {table} WHERE {column} IN ({listed})"), key=repr)
            for table, column in TABLES.items()
        }

    return read(store, dump)
