"""Conversion of rows from a damaged file to rows of a current table."""

from __future__ import annotations

from hermes.state.sqlite.connection import quote_name
from hermes.state.sqlite.repair.fileformat.btrees import Cell
from hermes.state.sqlite.repair.fileformat.records import Value
from hermes.state.sqlite.repair.fileformat.table_layouts import TableLayout

_NAMES = ("id", "session_id", "key", "name")
"""Columns that a row must have to be useful."""


class Conversion:
    """Converts stored rows of a table to rows of the current table."""

    def __init__(self, table: TableLayout, own: TableLayout | None) -> None:
        self._table = table
        self._has_own_key = table.has_keys and table.alias is None
        required = {column.name for column in own.columns if column.is_required} if own else set()
        self._required = [(at, each) for at, each in enumerate(table.columns) if each.name in required]
        self._texts = [at for at, each in enumerate(table.columns) if own and each.affinity == "text"]
        self._newest: dict[str, Value] = {}
        names = [quote_name(name) for name in table.names]
        if self._has_own_key:
            names.insert(0, next(each for each in ("rowid", "_rowid_", "oid") if each not in table.names))
        slots = ", ".join("?" * len(names))
        self.statement = f"INSERT OR IGNORE INTO {quote_name(table.name)} ({', '.join(names)}) VALUES ({slots})"

    def row(self, cell: Cell) -> list[Value] | None:
        """The values of a row; None if too little of it can be read."""
        row = self._table.complete_row(cell.key, cell.values)
        for at, column in self._required:
            if row[at] is not None:
                self._newest[column.name] = row[at]
            elif column.name in _NAMES:
                return None
            elif column.default is not None:
                row[at] = column.default
            else:
                # The time of the row before is about right; the role is unknown.
                row[at] = "unknown" if column.affinity == "text" else self._newest.get(column.name, 0)
        if bytes in map(type, row):
            for at in self._texts:
                value = row[at]
                if isinstance(value, bytes):
                    row[at] = value.decode(errors="replace")
        if self._has_own_key:
            row.insert(0, cell.key)
        return row
