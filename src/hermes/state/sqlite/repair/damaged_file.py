"""A damaged database file: which tables it has, and which rows can still be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hermes.state.sqlite.repair.fileformat.btrees import HIGHEST, LOWEST, TABLE_LEAF, Cell, Span, Trees, free_pages
from hermes.state.sqlite.repair.fileformat.pages import Pages
from hermes.state.sqlite.repair.fileformat.records import Value
from hermes.state.sqlite.repair.fileformat.table_layouts import (
    OLD_ORDERS,
    SEQUENCE,
    SchemaModel,
    TableLayout,
    is_virtual,
)
from hermes.state.sqlite.search import index_state

UTF8 = "utf-8"
REQUIRED_TABLES = frozenset(("sessions", "messages"))
OUR_TABLES = frozenset(("hermes_ledger", "usage_events", "message_times"))
"""Tables that no other program creates."""
SESSION_STORE_TABLES = OUR_TABLES.union(index_state.TABLES)
"""Tables that only exist in a file with sessions and messages."""

MAX_MISREAD_NAMES = 2
"""How many names of columns may be wrong in a CREATE statement that is otherwise readable."""

_KINDS = ("table", "index", "trigger", "view")


class SchemaEntry(NamedTuple):
    """An entry in the schema of a file."""

    kind: str
    name: str
    table: str
    root: int
    sql: str


class FoundRows(NamedTuple):
    """The rows of a page, and the layout that they have."""

    table: TableLayout
    number: int
    cells: list[Cell]


class DamagedFile:
    """Reads as much of a file as possible; no process may change it meanwhile."""

    def __init__(self, database: Path, schema: str) -> None:
        self.pages = Pages(database)
        self.trees = Trees(self.pages)
        self.own = SchemaModel(schema)
        self.own_tables = self.own.statements()
        """The tables of the current schema that hold rows of their own, with their CREATE statements."""
        self.lost: dict[str, list[Span]] = {}
        """Ranges of rows that could not be reached, by the name of the table."""
        self.damaged_index_pages: set[int] = set()
        self.layouts: dict[str, list[TableLayout]] = {}
        """The possible layouts of a table's rows, by the name of the table."""
        self._free, self._is_free_known = free_pages(self.pages)
        self._model = SchemaModel()
        self._roots: dict[str, int] = {}
        self.is_schema_whole = True
        """Whether all of the schema can be read."""
        self.schema_entries = self._read_schema()
        if not self.schema_entries and self.pages.header.codec != UTF8:
            self.pages.set_codec(UTF8)
            self.trees = Trees(self.pages)
            self.schema_entries = self._read_schema()
        self._find_tables()
        if not self.is_schema_whole:
            self._assume_current_tables()

    def close(self) -> None:
        """Close the file."""
        self.pages.close()

    def read_small_table(self, name: str) -> list[list[Value]]:
        """The rows of a small table; damaged pages on the way are not recorded."""
        if name not in self._roots:
            return []
        trees, table = Trees(self.pages), self.layouts[name][0]
        cells = [cell for span in trees.table(self._roots[name], []) for cell in trees.rows(span.number)]
        return [table.complete_row(cell.key, cell.values) for cell in cells if table.fits(cell.values)]

    def spans(self, name: str, high: int = HIGHEST) -> Iterator[Span]:
        """The pages with the rows of a table, in order."""
        lost = self.lost[name] = []
        if name in self._roots:
            yield from self.trees.table(self._roots[name], lost, high)
        else:
            lost.append(Span(0, LOWEST, HIGHEST))

    def rows(self, name: str, span: Span) -> FoundRows | None:
        """The rows on a page that a table leads to; None if they belong to another table."""
        cells, layouts = self.trees.rows(span.number), self.layouts[name]
        if not cells or name not in self.own_tables:
            return FoundRows(layouts[0], span.number, cells)
        table = _best_layout(layouts, cells)
        if table is not None:
            return FoundRows(table, span.number, cells)
        self.trees.release_page(span.number)
        self.lost[name].append(span)
        return None

    def plain_rows(self, name: str) -> Iterator[list[Value]]:
        """The rows of a table WITHOUT ROWID."""
        return self.trees.index(self._roots[name])

    def entries(self, table: str) -> Iterator[tuple[list[str | None], list[Value]]]:
        """The entries of all indexes of a table, each with the names of its columns; the key of the row comes last."""
        for entry in self.schema_entries.values():
            columns = self._model.index(entry.name) if entry.kind == "index" and entry.table == table else []
            if columns and columns[-1] is None:
                trees = Trees(self.pages)
                for values in trees.index(entry.root):
                    if len(values) == len(columns) and isinstance(values[-1], int):
                        yield columns, values
                self.damaged_index_pages |= trees.damaged_pages

    def unreachable_rows(self, names: Sequence[str]) -> Iterator[FoundRows]:
        """Pages that seem to hold rows of one of these tables and that no tree leads to."""
        tables = [table for name in names for table in self.layouts[name]]
        others = Trees(self.pages)  # most of these pages belong to an index, whose damage does not matter here
        for number in self.trees.unreachable_pages():
            cells = [] if self._free[number] else others.rows(number)
            table = _best_layout(tables, cells)
            if table is not None:
                yield FoundRows(table, number, [cell for cell in cells if self._may_be_lost(table.name, cell.key)])

    def rows_after_damage(self, names: Sequence[str]) -> Iterator[FoundRows]:
        """Pages with rows of one of these tables that come after a damaged place in the log."""
        tables = [table for name in names for table in self.layouts[name]]
        for number in self.pages.pages_after_damage:
            data = self.pages.page_after_damage(number)
            cells = self.trees.rows_of(data, number) if data[0] == TABLE_LEAF else []
            table = _best_layout(tables, cells)
            if table is not None:
                yield FoundRows(table, number, cells)

    def _may_be_lost(self, name: str, key: int) -> bool:
        """Whether a row may be a lost one; if the list of free pages is damaged, other rows may be deleted ones."""
        return self._is_free_known or any(span.low < key <= span.high for span in self.lost[name])

    def _read_schema(self) -> dict[str, SchemaEntry]:
        schema_entries: dict[str, SchemaEntry] = {}

        def add(cells: Sequence[Cell]) -> bool:
            found = [entry for cell in cells if (entry := _schema_entry_of(cell.values)) is not None]
            for entry in found:
                schema_entries.setdefault(entry.name, entry)
            return len(found) == len(cells)

        if self.pages.count:
            for span in self.trees.table(1, []):
                if not add(self.trees.rows(span.number)):
                    self.trees.damaged_pages.add(span.number)
        has_others = not schema_entries and sum(self._free) + 1 < self.pages.count
        lacks_some = bool(schema_entries.keys() & SESSION_STORE_TABLES) and not schema_entries.keys() >= REQUIRED_TABLES
        self.is_schema_whole = self.pages.count > 0 and not (self.trees.damaged_pages or has_others or lacks_some)
        if not self.is_schema_whole:
            others = Trees(self.pages)
            for number in self.trees.unreachable_pages():
                if not self._free[number]:
                    add(others.rows(number))
        return schema_entries

    def _find_tables(self) -> None:
        for entry in self.schema_entries.values():
            if entry.name == SEQUENCE.name:
                self._add_table(entry, SEQUENCE)
            elif self._holds_rows(entry):
                table = self._model.table(entry.name) if self._model.add(entry.sql) else None
                if table is not None:
                    self._add_table(entry, self._with_known_names(table))
                elif entry.name in self.own_tables:
                    self.is_schema_whole = False
        for entry in self.schema_entries.values():
            if entry.kind == "index" and entry.sql:
                self._model.add(entry.sql)

    def _add_table(self, entry: SchemaEntry, table: TableLayout) -> None:
        self.layouts[entry.name], self._roots[entry.name] = [table], entry.root

    def _with_known_names(self, table: TableLayout) -> TableLayout:
        """Correct the column names of a table if all but a few are as in the current schema."""
        for known in self._known_layouts(table.name):
            if len(known.names) == len(table.names):
                wrong = sum(name != right for name, right in zip(table.names, known.names, strict=True))
                if 0 < wrong <= MAX_MISREAD_NAMES:
                    return known
        return table

    def _known_layouts(self, name: str) -> list[TableLayout]:
        """The layouts that a table of the current schema may have in a file: as created today, or upgraded from old."""
        table = self.own.table(name) if name in self.own_tables else None
        if table is None:
            return []
        return [table, table.reorder(OLD_ORDERS[name].split())] if name in OLD_ORDERS else [table]

    def _assume_current_tables(self) -> None:
        """Use the current layout for tables that the schema no longer names, or whose definition is unreadable."""
        for name in self.own_tables:
            if name not in self.layouts:
                self.layouts[name] = self._known_layouts(name)
                if name in self.schema_entries:
                    self._roots[name] = self.schema_entries[name].root

    def _holds_rows(self, entry: SchemaEntry) -> bool:
        """Whether this is a real table, and not a part of an index."""
        virtual = [each.name for each in self.schema_entries.values() if is_virtual(each.sql)]
        parts = tuple(f"{name}_" for name in (*virtual, *index_state.TABLES))
        return (
            entry.kind == "table" and entry.root > 0 and not is_virtual(entry.sql) and not entry.name.startswith(parts)
        )


def _schema_entry_of(values: Sequence[Value]) -> SchemaEntry | None:
    """Return an entry of the schema, if these are the values of one."""
    if len(values) != 5:
        return None
    kind, name, table, root, sql = values
    if kind not in _KINDS or not isinstance(name, str) or not isinstance(table, str):
        return None
    assert isinstance(kind, str)
    return SchemaEntry(kind, name, table, root if isinstance(root, int) else 0, sql if isinstance(sql, str) else "")


def _best_layout(tables: Sequence[TableLayout], cells: Sequence[Cell]) -> TableLayout | None:
    """The table that most of these rows fit; rows with a value for each of its columns count twice."""
    if len(tables) == 1:
        return tables[0] if any(tables[0].fits(cell.values) for cell in cells) else None
    votes = [
        sum(1 + (len(cell.values) == len(table.columns)) for cell in cells if table.fits(cell.values))
        for table in tables
    ]
    most = max(votes, default=0)
    return tables[votes.index(most)] if most else None
