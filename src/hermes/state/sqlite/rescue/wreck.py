"""A damaged database file: which tables it has, and what can still be read of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hermes.state.sqlite import fulltext
from hermes.state.sqlite.rescue.pages import Pages
from hermes.state.sqlite.rescue.records import Value
from hermes.state.sqlite.rescue.shapes import OLD_ORDERS, SEQUENCE, Model, Table, is_virtual
from hermes.state.sqlite.rescue.trees import HIGHEST, LOWEST, TABLE_LEAF, Cell, Span, Trees, free_pages

UTF8 = "utf-8"
NEEDED = frozenset(("sessions", "messages"))
OURS = frozenset(("hermes_ledger", "usage_events", "message_times"))
"""Tables that no other program makes."""
EVIDENCE = OURS.union(fulltext.TABLES)
"""Tables beside which there are, or were, those of sessions and messages."""

MISREAD = 2
"""So many names of columns may be wrong in a CREATE statement that is otherwise understood."""

_KINDS = ("table", "index", "trigger", "view")


class Thing(NamedTuple):
    """Something that the schema of a file names."""

    kind: str
    name: str
    table: str
    root: int
    sql: str


class Find(NamedTuple):
    """The rows of a page, and what they look like."""

    table: Table
    number: int
    cells: list[Cell]


class Wreck:
    """A file that is read as far as it can be; nobody changes it meanwhile."""

    def __init__(self, database: Path, schema: str) -> None:
        self.pages = Pages(database)
        self.trees = Trees(self.pages)
        self.own = Model(schema)
        self.own_tables = self.own.statements()
        """The tables of today that hold rows of their own, with their CREATE statements."""
        self.lost: dict[str, list[Span]] = {}
        """Where rows of a table may have been that could not be reached, by the name of the table."""
        self.damaged_in_indexes: set[int] = set()
        self.layouts: dict[str, list[Table]] = {}
        """What the rows of a table look like, or may look like, by the name of the table."""
        self._free, self._is_free_known = free_pages(self.pages)
        self._model = Model()
        self._roots: dict[str, int] = {}
        self.is_schema_whole = True
        """Whether all of the schema can be read."""
        self.things = self._read_schema()
        if not self.things and self.pages.header.codec != UTF8:
            self.pages.take_text_for(UTF8)
            self.trees = Trees(self.pages)
            self.things = self._read_schema()
        self._find_tables()
        if not self.is_schema_whole:
            self._suppose_tables()

    def close(self) -> None:
        """Let go of the file."""
        self.pages.close()

    def peek(self, name: str) -> list[list[Value]]:
        """The rows of a small table, without a note of what was seen on the way."""
        if name not in self._roots:
            return []
        trees, table = Trees(self.pages), self.layouts[name][0]
        cells = [cell for span in trees.table(self._roots[name], []) for cell in trees.rows(span.number)]
        return [table.completed(cell.key, cell.values) for cell in cells if table.fits(cell.values)]

    def spans(self, name: str, high: int = HIGHEST) -> Iterator[Span]:
        """The pages with the rows of a table, in order."""
        lost = self.lost[name] = []
        if name in self._roots:
            yield from self.trees.table(self._roots[name], lost, high)
        else:
            lost.append(Span(0, LOWEST, HIGHEST))

    def rows(self, name: str, span: Span) -> Find | None:
        """The rows on a page to which a table has led; None if they are of another table."""
        cells, layouts = self.trees.rows(span.number), self.layouts[name]
        if not cells or name not in self.own_tables:
            return Find(layouts[0], span.number, cells)
        table = _best(layouts, cells)
        if table is not None:
            return Find(table, span.number, cells)
        self.trees.give_back(span.number)
        self.lost[name].append(span)
        return None

    def plain_rows(self, name: str) -> Iterator[list[Value]]:
        """The rows of a table WITHOUT ROWID."""
        return self.trees.index(self._roots[name])

    def entries(self, table: str) -> Iterator[tuple[list[str | None], list[Value]]]:
        """The entries of all indexes of a table, each with the names of its columns; the key of the row comes last."""
        for thing in self.things.values():
            columns = self._model.index(thing.name) if thing.kind == "index" and thing.table == table else []
            if columns and columns[-1] is None:
                trees = Trees(self.pages)
                for values in trees.index(thing.root):
                    if len(values) == len(columns) and isinstance(values[-1], int):
                        yield columns, values
                self.damaged_in_indexes |= trees.damaged

    def strays(self, names: Sequence[str]) -> Iterator[Find]:
        """Pages that look as if they had rows of one of these tables and that nothing leads to."""
        tables = [table for name in names for table in self.layouts[name]]
        others = Trees(self.pages)  # most of these pages are of an index, whose damage is no matter here
        for number in self.trees.strays():
            cells = [] if self._free[number] else others.rows(number)
            table = _best(tables, cells)
            if table is not None:
                yield Find(table, number, [cell for cell in cells if self._may_be_lost(table.name, cell.key)])

    def behind(self, names: Sequence[str]) -> Iterator[Find]:
        """Pages with rows of one of these tables that are in the log behind damage in it."""
        tables = [table for name in names for table in self.layouts[name]]
        for number in self.pages.behind:
            data = self.pages.page_behind(number)
            cells = self.trees.rows_of(data, number) if data[0] == TABLE_LEAF else []
            table = _best(tables, cells)
            if table is not None:
                yield Find(table, number, cells)

    def _may_be_lost(self, name: str, key: int) -> bool:
        """Whether a row may be a lost one; where free pages are not known, others may have been deleted."""
        return self._is_free_known or any(span.low < key <= span.high for span in self.lost[name])

    def _read_schema(self) -> dict[str, Thing]:
        things: dict[str, Thing] = {}

        def add(cells: Sequence[Cell]) -> bool:
            found = [thing for cell in cells if (thing := _thing_of(cell.values)) is not None]
            for thing in found:
                things.setdefault(thing.name, thing)
            return len(found) == len(cells)

        if self.pages.count:
            for span in self.trees.table(1, []):
                if not add(self.trees.rows(span.number)):
                    self.trees.damaged.add(span.number)
        has_others = not things and sum(self._free) + 1 < self.pages.count
        lacks_some = bool(things.keys() & EVIDENCE) and not things.keys() >= NEEDED
        self.is_schema_whole = self.pages.count > 0 and not (self.trees.damaged or has_others or lacks_some)
        if not self.is_schema_whole:
            others = Trees(self.pages)
            for number in self.trees.strays():
                if not self._free[number]:
                    add(others.rows(number))
        return things

    def _find_tables(self) -> None:
        for thing in self.things.values():
            if thing.name == SEQUENCE.name:
                self._note(thing, SEQUENCE)
            elif self._holds_rows(thing):
                table = self._model.table(thing.name) if self._model.add(thing.sql) else None
                if table is not None:
                    self._note(thing, self._as_known(table))
                elif thing.name in self.own_tables:
                    self.is_schema_whole = False
        for thing in self.things.values():
            if thing.kind == "index" and thing.sql:
                self._model.add(thing.sql)

    def _note(self, thing: Thing, table: Table) -> None:
        self.layouts[thing.name], self._roots[thing.name] = [table], thing.root

    def _as_known(self, table: Table) -> Table:
        """A table with the names of its columns put right, if all but a few are as this code knows them."""
        for known in self._known(table.name):
            if len(known.names) == len(table.names):
                wrong = sum(name != right for name, right in zip(table.names, known.names, strict=True))
                if 0 < wrong <= MISREAD:
                    return known
        return table

    def _known(self, name: str) -> list[Table]:
        """What a table of today may look like in a file: as it is made, or as it was made and has been added to."""
        table = self.own.table(name) if name in self.own_tables else None
        if table is None:
            return []
        return [table, table.reordered(OLD_ORDERS[name].split())] if name in OLD_ORDERS else [table]

    def _suppose_tables(self) -> None:
        """Take the tables that the schema does not name any more, or not in words, to be like those of today."""
        for name in self.own_tables:
            if name not in self.layouts:
                self.layouts[name] = self._known(name)
                if name in self.things:
                    self._roots[name] = self.things[name].root

    def _holds_rows(self, thing: Thing) -> bool:
        """Whether this is a table by itself, and not a part of an index."""
        virtual = [each.name for each in self.things.values() if is_virtual(each.sql)]
        parts = tuple(f"{name}_" for name in (*virtual, *fulltext.TABLES))
        return (
            thing.kind == "table" and thing.root > 0 and not is_virtual(thing.sql) and not thing.name.startswith(parts)
        )


def _thing_of(values: Sequence[Value]) -> Thing | None:
    """A row of the schema, if these are the values of one."""
    if len(values) != 5:
        return None
    kind, name, table, root, sql = values
    if kind not in _KINDS or not isinstance(name, str) or not isinstance(table, str):
        return None
    assert isinstance(kind, str)
    return Thing(kind, name, table, root if isinstance(root, int) else 0, sql if isinstance(sql, str) else "")


def _best(tables: Sequence[Table], cells: Sequence[Cell]) -> Table | None:
    """The table that most of these rows look like; those with a value for each of its columns count twice."""
    if len(tables) == 1:
        return tables[0] if any(tables[0].fits(cell.values) for cell in cells) else None
    votes = [
        sum(1 + (len(cell.values) == len(table.columns)) for cell in cells if table.fits(cell.values))
        for table in tables
    ]
    most = max(votes, default=0)
    return tables[votes.index(most)] if most else None
