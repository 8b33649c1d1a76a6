"""Comparing the search index with the messages: a damaged index may be consistent and yet wrong."""

from __future__ import annotations

import re
from collections.abc import Callable

from hermes.state.sqlite.connection import View, allow_internal_writes
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.search.indexing import MESSAGE, add
from hermes.state.sqlite.search.rebuild import VIRTUAL_TABLE

BATCH = 512
FIRST_OF_WORDS = 11
"""The first row with words; the rows of an index before it describe the others."""
PLACE = (1 << 37) - 1
"""The bits of a row id that do not say to which segment of the index the row belongs."""

_SHADOWS = ("data", "idx", "docsize", "config")
_TABLE_NAME = re.compile(r"IF NOT EXISTS (\w+)")
_FOUND, _FRESH = "found", "fresh"


def wrong_indexes(view: View, schema_sql: str, report: Callable[[int, int], None]) -> list[str]:
    """Return the indexes that differ from freshly built ones, which are temporary: the file is only read.

    An index that has been merged into one segment has the same bytes, whatever the order of its messages was.
    """
    view.run("PRAGMA temp_store = file")
    view.run("BEGIN")
    with allow_internal_writes(view.connection):
        _copy(view, schema_sql)
    newest = _fill(view, report)
    return [
        table
        for table in index_state.TABLES
        if _read_merged(view, _FOUND, table, newest) != _read_merged(view, _FRESH, table, newest)
    ]


def _copy(view: View, schema_sql: str) -> None:
    for statement in VIRTUAL_TABLE.findall(schema_sql):
        for which in (_FOUND, _FRESH):
            view.run(_TABLE_NAME.sub(rf"temp.{which}_\1", statement))
    for table in index_state.TABLES:
        for shadow in _SHADOWS:
            view.run(f"DELETE FROM temp.{_FOUND}_{table}_{shadow}")
            view.run(f"INSERT INTO temp.{_FOUND}_{table}_{shadow} SELECT * FROM main.{table}_{shadow}")
    # Makes SQLite forget the empty index that it created.
    view.run("PRAGMA writable_schema = RESET")


def _fill(view: View, report: Callable[[int, int], None]) -> int:
    """Index the messages that the index should have, and return the newest id."""
    mark, done = index_state.indexed_upto(view), 0
    tables = [f"temp.{_FRESH}_{table}" for table in index_state.TABLES]
    while rows := view.rows(
        f"""{MESSAGE} WHERE m.id > :done AND m.id <= :mark
            AND NOT EXISTS (SELECT 1 FROM stale_index t WHERE t.message_id = m.id) ORDER BY m.id LIMIT {BATCH}""",
        done=done,
        mark=mark,
    ):
        add(view, rows, tables)
        done = rows[-1][0]
        report(done, mark)
    return mark


def _read_merged(view: View, which: str, table: str, newest: int) -> list[tuple[int, bytes]]:
    """Return all rows of an index in its shortest form."""
    name = f"{which}_{table}"
    view.run(f"DELETE FROM temp.{name} WHERE rowid IN (SELECT message_id FROM main.stale_index)")
    # Only a merge produces that form, and a single segment would stay as it was written.
    view.run("SAVEPOINT another_part")
    view.run(f"INSERT INTO temp.{name}(rowid, content) VALUES (:id, 'another part')", id=newest + 1)
    view.run("RELEASE another_part")
    view.run(f"INSERT INTO temp.{name}({name}) VALUES ('optimize')")
    return view.rows(f"SELECT id & {PLACE}, block FROM temp.{name}_data WHERE id >= {FIRST_OF_WORDS} ORDER BY id")
