"""Bringing every row that can be read out of a damaged file into a new one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import apsw

from hermes.home import create_private_file
from hermes.state.engine import Report
from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.rescue.conversion import Conversion, quoted
from hermes.state.sqlite.rescue.mending import Mending
from hermes.state.sqlite.rescue.numbering import are_in_order, corrected
from hermes.state.sqlite.rescue.shapes import SEQUENCE, Table, make
from hermes.state.sqlite.rescue.trees import HIGHEST, Cell, Span
from hermes.state.sqlite.rescue.wreck import Find, Wreck

BATCH = 2_000
PAGES_BETWEEN_REPORTS = 64
STEPS_BETWEEN_LOOKS = 100_000
FIRST = ("messages", "sessions")
"""Whatever else is damaged, no other table is to take pages for its own that are theirs."""
MADE_ANEW = ("schema_version", "session_tools", "stale_sessions", "stale_index", "message_times")
"""Tables whose rows are worked out from those of others."""
NOTES_OF_THE_FILE = ("schema_cookie", "min_reader", "min_writer")
"""A note that is true of one file only."""


@dataclass(slots=True)
class Tally:
    """How many rows of a table were salvaged."""

    kept: int = 0
    """Those to which the table led."""
    stray: int = 0
    """Those on pages to which nothing led."""
    cut: int = 0
    """Rows among them with a value that could not be read to its end."""

    @property
    def count(self) -> int:
        """All of them."""
        return self.kept + self.stray


@dataclass(slots=True)
class Salvaged:
    """What was brought out of a damaged file."""

    rows: dict[str, Tally] = field(default_factory=dict)
    incomplete: dict[str, int] = field(default_factory=dict)
    """How many messages are known to be lost, by session."""
    sessions_rebuilt: int = 0
    """Sessions whose rows are lost, and of which the indexes told the most important."""
    sessions_made: int = 0
    """Sessions of which nothing is left but messages or bookings."""
    titles_changed: int = 0
    left_out: list[str] = field(default_factory=list)
    """Tables of other programs that could not be made in the new file."""
    damage: list[str] = field(default_factory=list)
    """What of the file is damaged: header, schema, data, log, index."""
    pages: int = 0
    pages_damaged: int = 0

    @property
    def sessions(self) -> int:
        """How many sessions there are now."""
        return self.rows["sessions"].count + self.sessions_rebuilt + self.sessions_made

    @property
    def messages(self) -> int:
        """How many messages there are now."""
        return self.rows["messages"].count

    @property
    def lost_messages(self) -> int:
        """How many messages are known to be lost."""
        return sum(self.incomplete.values())


def salvage(wreck: Wreck, target: Path, report: Report | None = None) -> Salvaged:
    """Bring all rows of a damaged file into a new one, which gets tables but no indexes yet."""
    create_private_file(target)
    connection = connect(target, apsw.SQLITE_OPEN_READWRITE, is_defended=False)
    try:
        # If this dies, the file is worth nothing; it is written to the disk for good once it is whole.
        for pragma in ("journal_mode = off", "synchronous = off", "cache_size = -65536"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.set_progress_handler(lambda: False, STEPS_BETWEEN_LOOKS)  # lets Ctrl-C in
        connection.execute("BEGIN").fetchall()
        salvaged = _Salvage(wreck, connection, report).run()
        connection.execute("COMMIT").fetchall()
        return salvaged
    finally:
        connection.close()


class _Salvage:
    def __init__(self, wreck: Wreck, connection: apsw.Connection, report: Report | None) -> None:
        self._wreck = wreck
        self._connection = connection
        self._report = report
        self._mending = Mending(connection)
        self._own = wreck.own_tables
        self._highest = {str(name): seq for name, seq in wreck.peek(SEQUENCE.name) if isinstance(seq, int)}
        self._conversions: dict[Table, Conversion] = {}
        self._pages_read = 0
        self._result = Salvaged(pages=wreck.pages.expected)

    def run(self) -> Salvaged:
        wreck, result = self._wreck, self._result
        of_schema = len(wreck.trees.damaged)
        names = self._make_tables()
        for name in names:
            self._bring(name)
        own = [name for name in names if name in self._own]
        # Also where every table seems to be whole: its first page may be another one of its pages.
        self._bring_strays(wreck.strays(own))
        self._bring_strays(wreck.behind(own))
        is_torn = (
            len(wreck.trees.damaged) > of_schema
            or any(wreck.lost[name] for name in own)
            or any(tally.stray for tally in result.rows.values())
        )
        self._mend(is_torn=is_torn)
        self._make_extras()
        self._recount(own)
        found = {
            "header": not wreck.pages.header.is_sound,
            "schema": not wreck.is_schema_whole,
            "data": is_torn or bool(result.incomplete or result.sessions_rebuilt),
            "log": bool(wreck.pages.behind),
            "index": bool(wreck.damaged_in_indexes),
        }
        result.damage = [kind for kind, is_so in found.items() if is_so]
        result.pages_damaged = len(wreck.trees.damaged | wreck.damaged_in_indexes)
        return result

    def _make_tables(self) -> list[str]:
        """Make the tables of today and those of other programs; answers which may have rows to be brought over."""
        for sql in self._own.values():
            self._connection.execute(sql).fetchall()
        for name, layouts in self._wreck.layouts.items():
            if name in self._own:
                self._add_columns(name, layouts[0])
            elif name != SEQUENCE.name and not make(self._connection, self._wreck.things[name].sql):
                self._result.left_out.append(name)
        left_out = (*MADE_ANEW, SEQUENCE.name, *self._result.left_out)
        there = [name for name in self._wreck.layouts if name not in left_out]
        return sorted(there, key=lambda name: (name not in FIRST, name))

    def _add_columns(self, name: str, layout: Table) -> None:
        """Give a table the columns that another program has added to it."""
        wanted = self._wreck.own.table(name)
        assert wanted is not None
        for column in layout.columns:
            if column.name not in wanted.names:
                self._connection.execute(
                    f"ALTER TABLE {name} ADD COLUMN {quoted(column.name)} {column.affinity}"
                ).fetchall()

    def _make_extras(self) -> None:
        """Make the indexes of other programs on tables of their own; their triggers and views are left behind."""
        for thing in self._wreck.things.values():
            belongs = thing.table not in self._own and thing.table not in self._result.left_out
            if thing.kind == "index" and thing.sql and belongs:
                make(self._connection, thing.sql)

    def _bring(self, name: str) -> None:
        layout = self._wreck.layouts[name][0]
        if not layout.has_keys:
            self._insert(layout, (Cell(0, values, False) for values in self._wreck.plain_rows(name)))
            return
        doubtful: list[Span] = []
        self._tell(name)
        for span in self._wreck.spans(name, self._highest.get(name, HIGHEST)):
            find = self._wreck.rows(name, span)
            if find is None:
                continue
            if are_in_order([cell.key for cell in find.cells], span.low, span.high):
                self._insert(find.table, find.cells)
            else:
                doubtful.append(span)
            self._count(name)
        # Keys that contradict their page must not take the place of rows that are where they belong.
        for span in doubtful:
            find = self._wreck.rows(name, span)
            if find is not None:
                self._wreck.trees.damaged.add(span.number)
                self._insert(find.table, _renumbered(find.cells, span))

    def _bring_strays(self, finds: Iterable[Find]) -> None:
        for find in finds:
            if find.table.name == "messages":
                self._mending.note_strays(cell.key for cell in find.cells)
            self._insert(find.table, find.cells, are_stray=True)
            self._count(find.table.name)

    def _insert(self, table: Table, cells: Iterable[Cell], *, are_stray: bool = False) -> None:
        """Insert rows, except for those whose place is taken."""
        tally = self._result.rows.setdefault(table.name, Tally())
        conversion = self._conversions.get(table)
        if conversion is None:
            conversion = self._conversions[table] = Conversion(table, self._wreck.own.table(table.name))
        before = self._connection.total_changes()
        waiting = iter(cells)
        while part := list(islice(waiting, BATCH)):
            tally.cut += sum(cell.is_cut for cell in part)
            rows = [row for cell in part if (row := conversion.row(cell)) is not None]
            self._connection.executemany(conversion.statement, rows).fetchall()
        inserted = self._connection.total_changes() - before
        tally.kept += 0 if are_stray else inserted
        tally.stray += inserted if are_stray else 0

    def _mend(self, *, is_torn: bool) -> None:
        mending, wreck, result = self._mending, self._wreck, self._result
        sessions = wreck.own.table("sessions")
        assert sessions is not None
        for key in NOTES_OF_THE_FILE:
            self._connection.execute("DELETE FROM state_meta WHERE key = ?", (key,)).fetchall()
        mending.note_entries(wreck.entries("messages"))
        result.sessions_rebuilt = mending.rebuild_sessions(wreck.entries("sessions"), sessions.names)
        mending.return_to_sessions()
        mending.drop_doubles()
        result.sessions_made = mending.make_sessions(wreck.own)
        result.incomplete = mending.lost_messages(self._highest.get("messages", HIGHEST), is_torn=is_torn)
        if "child_kind" not in wreck.layouts["sessions"][0].names:
            mending.ask_for_kinds()
        result.titles_changed = mending.count_doubled_titles()
        mending.raise_sequences(self._highest)
        mending.mark_all_stale()

    def _recount(self, names: list[str]) -> None:
        """Count what is there in the end: some rows have gone, others have come."""
        made = {"sessions": self._result.sessions_rebuilt + self._result.sessions_made}
        for name in names:
            tally = self._result.rows.setdefault(name, Tally())
            if name == "messages":
                tally.stray = self._mending.count_strays()
            tally.kept = self._mending.count(name) - tally.stray - made.get(name, 0)

    def _count(self, name: str) -> None:
        self._pages_read += 1
        if self._pages_read % PAGES_BETWEEN_REPORTS == 0:
            self._tell(name)

    def _tell(self, name: str) -> None:
        if self._report is not None:
            self._report(f"salvaging {name}", self._pages_read, max(self._pages_read, self._result.pages))


def _renumbered(cells: list[Cell], span: Span) -> list[Cell]:
    keys = corrected([cell.key for cell in cells], span.low, span.high)
    return [cell._replace(key=key) for cell, key in zip(cells, keys, strict=True)]
