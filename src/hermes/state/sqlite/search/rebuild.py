"""Rebuilding a damaged search index: it can always be built again from the messages."""

from __future__ import annotations

import re

import apsw

from hermes.state.engine import IndexDamaged
from hermes.state.sqlite.connection import View, allow_internal_writes
from hermes.state.sqlite.search import index_state

DAMAGE = (apsw.CorruptError, apsw.SQLError, apsw.NoMemError)
"""The errors of a damaged index: random bytes where a length should be may also ask for too much memory."""

VIRTUAL_TABLE = re.compile(r"CREATE VIRTUAL TABLE[^;]{0,2000};")
"""A statement of the schema that creates an index."""

_SHADOWS = ("data", "idx", "content", "docsize", "config")


def check(view: View) -> None:
    """Raise `IndexDamaged` if an index is missing or inconsistent; reads all of it, in a transaction.

    The transaction cannot be used afterwards: SQLite rolls back one in which memory ran out.
    """
    for table in index_state.TABLES:
        try:
            view.run(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")
        except DAMAGE as exc:
            raise IndexDamaged from exc


def empty_indexes(view: View, epoch: int, schema_sql: str) -> bool:
    """Empty both indexes in the surrounding transaction; return False if another process did so since `epoch`."""
    if index_state.epoch(view) != epoch:
        return False
    for table in index_state.TABLES:
        _drop(view, table)
    for statement in VIRTUAL_TABLE.findall(schema_sql):
        view.run(statement)
    for table in index_state.TABLES:
        index_state.configure(view, table)
    index_state.reset(view)
    return True


def lacks_messages(view: View) -> bool:
    """Whether a message is missing from an index that should have it."""
    mark = index_state.indexed_upto(view)
    return any(
        view.value(
            f"""SELECT m.id FROM messages m LEFT JOIN {table}_docsize d ON d.id = m.id
                WHERE m.id <= :mark AND d.id IS NULL LIMIT 1""",
            mark=mark,
        )
        is not None
        for table in index_state.TABLES
    )


def _drop(view: View, table: str) -> None:
    try:
        view.run(f"DROP TABLE IF EXISTS {table}")
        return
    except apsw.Error:
        pass  # too damaged to be opened, which a normal DROP needs
    with allow_internal_writes(view.connection):
        view.run("PRAGMA writable_schema = ON")
        try:
            view.run("DELETE FROM sqlite_schema WHERE name = :table", table=table)
        finally:
            view.run("PRAGMA writable_schema = RESET")
    for shadow in _SHADOWS:
        view.run(f"DROP TABLE IF EXISTS {table}_{shadow}")
