"""Access to a store's file like another program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

BUSY_MS = 30_000
"""How long to wait for a thread of a store that indexes meanwhile."""


@contextmanager
def plain(path: Path) -> Iterator[apsw.Connection]:
    """A connection like that of another program."""
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(BUSY_MS)
        yield connection
    finally:
        connection.close()


def rows(path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """All rows of a query, read by a plain connection."""
    with plain(path) as connection:
        return connection.execute(sql, values).fetchall()


def change(path: Path, *statements: str) -> None:
    """Change a file by plain SQL, in one transaction."""
    with plain(path) as connection:
        connection.execute("BEGIN IMMEDIATE")  # one that begins by reading cannot wait for the threads of a store
        for statement in statements:
            connection.execute(statement).fetchall()
        connection.execute("COMMIT")


def flaws(path: Path) -> list[str]:
    """The errors that SQLite finds in a file: pages, indexes, references; empty if there are none."""
    try:
        found = [str(row[0]) for row in rows(path, "PRAGMA integrity_check") if row[0] != "ok"]
        return found + [f"a reference leads nowhere: {row}" for row in rows(path, "PRAGMA foreign_key_check")]
    except apsw.Error as exc:
        return [str(exc)]
