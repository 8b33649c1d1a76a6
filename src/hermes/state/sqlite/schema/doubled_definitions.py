"""Names that the schema of a file defines twice: SQLite refuses to read such a file at all."""

from __future__ import annotations

from pathlib import Path

import apsw

from hermes.log import warn
from hermes.state.sqlite.connection import View, connect
from hermes.state.sqlite.schema.definitions import our_definitions

_OURS = "hermes_ledger"


def remove_doubled(path: Path) -> bool:
    """Remove the second definition of each name from the schema of a file of ours; return False if there is none.

    The caller has the writer lock. Of two equal rows, one is removed. Of two that differ, the one that is ours
    stays, if neither has pages of its own.
    """
    connection = connect(path, apsw.SQLITE_OPEN_READWRITE, is_defended=False)
    try:
        view = View(connection)
        view.run("PRAGMA writable_schema = ON")  # makes SQLite read as much of such a schema as it can
        view.run("PRAGMA synchronous = full")
        view.run("BEGIN IMMEDIATE")
        rows = view.rows("SELECT rowid, type, name, tbl_name, rootpage, sql FROM sqlite_schema ORDER BY rowid")
        surplus = _rows_to_delete([(row[0], tuple(row[1:])) for row in rows])
        if not surplus or not any(row[2] == _OURS for row in rows):
            view.run("ROLLBACK")
            return False
        for number in surplus:
            view.run("DELETE FROM sqlite_schema WHERE rowid = :number", number=number)
        # Makes other connections read the schema again.
        view.run(f"PRAGMA schema_version = {int(view.value('PRAGMA schema_version')) + 1}")
        view.run("COMMIT")
    finally:
        connection.close()
    names = ", ".join(str(row[2]) for row in rows if row[0] in surplus)
    warn(__name__, "the schema of %s defined %s twice; one was removed, and no message is affected", path, names)
    return True


def _rows_to_delete(rows: list[tuple[int, tuple[object, ...]]]) -> set[int]:
    """The numbers of the rows to delete."""
    first: dict[object, tuple[int, tuple[object, ...]]] = {}
    surplus = set()
    for number, row in rows:
        name, place, sql = row[1], row[3], row[4]
        if name not in first:
            first[name] = (number, row)
            continue
        kept_number, kept = first[name]
        if row == kept or (place == kept[3] == 0 and kept[4] == our_definitions().get(str(name))):
            surplus.add(number)
        elif place == kept[3] == 0 and sql == our_definitions().get(str(name)):
            surplus.add(kept_number)
            first[name] = (number, row)
    return surplus
