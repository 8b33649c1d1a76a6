"""Copying every readable row of a damaged file into a new one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import apsw

from hermes.home import create_private_file
from hermes.state.engine import Report
from hermes.state.sqlite.connection import connect, quote_name
from hermes.state.sqlite.repair.consistency import ConsistencyRepair
from hermes.state.sqlite.repair.damaged_file import DamagedFile, FoundRows
from hermes.state.sqlite.repair.fileformat.btrees import HIGHEST, Cell, Span
from hermes.state.sqlite.repair.fileformat.rowids import are_in_order, correct_rowids
from hermes.state.sqlite.repair.fileformat.table_layouts import SEQUENCE, TableLayout, run_create_statement
from hermes.state.sqlite.repair.row_conversion import Conversion

BATCH = 2_000
PAGES_BETWEEN_REPORTS = 64
STEPS_BETWEEN_LOOKS = 100_000
FIRST = ("messages", "sessions")
"""These come first, so that no other table claims their pages."""
DERIVED_TABLES = ("schema_version", "session_tools", "stale_sessions", "stale_index", "message_times")
"""Tables whose rows are computed from other tables."""
PER_FILE_KEYS = ("schema_cookie", "min_reader", "min_writer")
"""Keys of `state_meta` that are true of one file only."""


@dataclass(slots=True)
class SavedRows:
    """How many rows of a table were salvaged."""

    from_table: int = 0
    """Rows that the table leads to."""
    unreachable: int = 0
    """Rows on pages that no tree leads to."""
    truncated: int = 0
    """Rows with a value that could not be read to its end."""

    @property
    def count(self) -> int:
        """All rows."""
        return self.from_table + self.unreachable


@dataclass(slots=True)
class Salvaged:
    """What was saved from a damaged file."""

    rows: dict[str, SavedRows] = field(default_factory=dict)
    incomplete: dict[str, int] = field(default_factory=dict)
    """How many messages are known to be lost, by session."""
    sessions_rebuilt: int = 0
    """Sessions whose rows are lost, rebuilt from the entries of the indexes."""
    sessions_made: int = 0
    """Sessions of which only messages or usage events are left."""
    titles_changed: int = 0
    left_out: list[str] = field(default_factory=list)
    """Tables of other programs that could not be created in the new file."""
    damage: list[str] = field(default_factory=list)
    """The damaged parts of the file: header, schema, data, log, index."""
    pages: int = 0
    pages_damaged: int = 0

    @property
    def sessions(self) -> int:
        """How many sessions the new file has."""
        return self.rows["sessions"].count + self.sessions_rebuilt + self.sessions_made

    @property
    def messages(self) -> int:
        """How many messages the new file has."""
        return self.rows["messages"].count

    @property
    def lost_messages(self) -> int:
        """How many messages are known to be lost."""
        return sum(self.incomplete.values())


def salvage(damaged: DamagedFile, target: Path, report: Report | None = None) -> Salvaged:
    """Copy all rows of a damaged file into a new one, which gets tables but no indexes yet."""
    create_private_file(target)
    connection = connect(target, apsw.SQLITE_OPEN_READWRITE, is_defended=False)
    try:
        # If this process dies, the new file is thrown away; it is synced once it is complete.
        for pragma in ("journal_mode = off", "synchronous = off", "cache_size = -65536"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.set_progress_handler(lambda: False, STEPS_BETWEEN_LOOKS)  # lets Ctrl-C in
        connection.execute("BEGIN").fetchall()
        salvaged = _Salvage(damaged, connection, report).run()
        connection.execute("COMMIT").fetchall()
        return salvaged
    finally:
        connection.close()


class _Salvage:
    def __init__(self, damaged: DamagedFile, connection: apsw.Connection, report: Report | None) -> None:
        self._damaged = damaged
        self._connection = connection
        self._report = report
        self._consistency = ConsistencyRepair(connection)
        self._own = damaged.own_tables
        self._highest = {
            str(name): seq for name, seq in damaged.read_small_table(SEQUENCE.name) if isinstance(seq, int)
        }
        self._conversions: dict[TableLayout, Conversion] = {}
        self._pages_read = 0
        self._result = Salvaged(pages=damaged.pages.expected)

    def run(self) -> Salvaged:
        damaged, result = self._damaged, self._result
        of_schema = len(damaged.trees.damaged_pages)
        names = self._make_tables()
        for name in names:
            self._salvage_table(name)
        own = [name for name in names if name in self._own]
        # Also if every table seems to be complete: the first page of a table may be a copy of another one of its pages.
        self._salvage_loose_pages(damaged.unreachable_rows(own))
        self._salvage_loose_pages(damaged.rows_after_damage(own))
        is_torn = (
            len(damaged.trees.damaged_pages) > of_schema
            or any(damaged.lost[name] for name in own)
            or any(tally.unreachable for tally in result.rows.values())
        )
        self._make_consistent(is_torn=is_torn)
        self._make_extras()
        self._recount(own)
        found = {
            "header": not damaged.pages.header.is_sound,
            "schema": not damaged.is_schema_whole,
            "data": is_torn or bool(result.incomplete or result.sessions_rebuilt),
            "log": bool(damaged.pages.pages_after_damage),
            "index": bool(damaged.damaged_index_pages),
        }
        result.damage = [kind for kind, is_so in found.items() if is_so]
        result.pages_damaged = len(damaged.trees.damaged_pages | damaged.damaged_index_pages)
        return result

    def _make_tables(self) -> list[str]:
        """Create the current tables and those of other programs; return the tables whose rows are copied."""
        for sql in self._own.values():
            self._connection.execute(sql).fetchall()
        for name, layouts in self._damaged.layouts.items():
            if name in self._own:
                self._add_columns(name, layouts[0])
            elif name != SEQUENCE.name and not run_create_statement(
                self._connection, self._damaged.schema_entries[name].sql
            ):
                self._result.left_out.append(name)
        left_out = (*DERIVED_TABLES, SEQUENCE.name, *self._result.left_out)
        there = [name for name in self._damaged.layouts if name not in left_out]
        return sorted(there, key=lambda name: (name not in FIRST, name))

    def _add_columns(self, name: str, layout: TableLayout) -> None:
        """Add the columns that another program has added to a table."""
        wanted = self._damaged.own.table(name)
        assert wanted is not None
        for column in layout.columns:
            if column.name not in wanted.names:
                self._connection.execute(
                    f"ALTER TABLE {name} ADD COLUMN {quote_name(column.name)} {column.affinity}"
                ).fetchall()

    def _make_extras(self) -> None:
        """Create the indexes of other programs on their own tables; their triggers and views are dropped."""
        for entry in self._damaged.schema_entries.values():
            belongs = entry.table not in self._own and entry.table not in self._result.left_out
            if entry.kind == "index" and entry.sql and belongs:
                run_create_statement(self._connection, entry.sql)

    def _salvage_table(self, name: str) -> None:
        layout = self._damaged.layouts[name][0]
        if not layout.has_keys:
            self._insert(layout, (Cell(0, values, False) for values in self._damaged.plain_rows(name)))
            return
        doubtful: list[Span] = []
        self._report_progress(name)
        for span in self._damaged.spans(name, self._highest.get(name, HIGHEST)):
            found_rows = self._damaged.rows(name, span)
            if found_rows is None:
                continue
            if are_in_order([cell.key for cell in found_rows.cells], span.low, span.high):
                self._insert(found_rows.table, found_rows.cells)
            else:
                doubtful.append(span)
            self._count(name)
        # Rows with keys outside the range of their page must not replace rows in the right place.
        for span in doubtful:
            found_rows = self._damaged.rows(name, span)
            if found_rows is not None:
                self._damaged.trees.damaged_pages.add(span.number)
                self._insert(found_rows.table, _renumber(found_rows.cells, span))

    def _salvage_loose_pages(self, pages: Iterable[FoundRows]) -> None:
        for found_rows in pages:
            if found_rows.table.name == "messages":
                self._consistency.note_unreachable(cell.key for cell in found_rows.cells)
            self._insert(found_rows.table, found_rows.cells, are_unreachable=True)
            self._count(found_rows.table.name)

    def _insert(self, table: TableLayout, cells: Iterable[Cell], *, are_unreachable: bool = False) -> None:
        """Insert rows, except those whose key exists already."""
        tally = self._result.rows.setdefault(table.name, SavedRows())
        conversion = self._conversions.get(table)
        if conversion is None:
            conversion = self._conversions[table] = Conversion(table, self._damaged.own.table(table.name))
        before = self._connection.total_changes()
        waiting = iter(cells)
        while part := list(islice(waiting, BATCH)):
            tally.truncated += sum(cell.is_truncated for cell in part)
            rows = [row for cell in part if (row := conversion.row(cell)) is not None]
            self._connection.executemany(conversion.statement, rows).fetchall()
        inserted = self._connection.total_changes() - before
        tally.from_table += 0 if are_unreachable else inserted
        tally.unreachable += inserted if are_unreachable else 0

    def _make_consistent(self, *, is_torn: bool) -> None:
        consistency, damaged, result = self._consistency, self._damaged, self._result
        sessions = damaged.own.table("sessions")
        assert sessions is not None
        for key in PER_FILE_KEYS:
            self._connection.execute("DELETE FROM state_meta WHERE key = ?", (key,)).fetchall()
        consistency.note_entries(damaged.entries("messages"))
        result.sessions_rebuilt = consistency.rebuild_sessions(damaged.entries("sessions"), sessions.names)
        consistency.return_to_sessions()
        consistency.drop_duplicates()
        result.sessions_made = consistency.make_sessions(damaged.own)
        result.incomplete = consistency.lost_messages(self._highest.get("messages", HIGHEST), is_torn=is_torn)
        if "child_kind" not in damaged.layouts["sessions"][0].names:
            consistency.forget_kinds()
        result.titles_changed = consistency.count_doubled_titles()
        consistency.raise_sequences(self._highest)
        consistency.mark_all_stale()

    def _recount(self, names: list[str]) -> None:
        """Count the rows that are there in the end: some were dropped, others added."""
        made = {"sessions": self._result.sessions_rebuilt + self._result.sessions_made}
        for name in names:
            tally = self._result.rows.setdefault(name, SavedRows())
            if name == "messages":
                tally.unreachable = self._consistency.count_unreachable()
            tally.from_table = self._consistency.count(name) - tally.unreachable - made.get(name, 0)

    def _count(self, name: str) -> None:
        self._pages_read += 1
        if self._pages_read % PAGES_BETWEEN_REPORTS == 0:
            self._report_progress(name)

    def _report_progress(self, name: str) -> None:
        if self._report is not None:
            self._report(f"salvaging {name}", self._pages_read, max(self._pages_read, self._result.pages))


def _renumber(cells: list[Cell], span: Span) -> list[Cell]:
    keys = correct_rowids([cell.key for cell in cells], span.low, span.high)
    return [cell._replace(key=key) for cell, key in zip(cells, keys, strict=True)]
