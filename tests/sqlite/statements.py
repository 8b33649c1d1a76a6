"""The statements that operations really run on SQLite, and their query plans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import apsw


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that was run, with its connection and file."""

    connection: apsw.Connection
    file: str
    sql: str
    values: Any

    def plan(self) -> list[str]:
        """The query plan of SQLite, one line for each step."""
        plain = apsw.Connection(self.file, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            steps = plain.execute(f"EXPLAIN QUERY PLAN {self.sql}", self.values).fetchall()
        finally:
            plain.close()
        return [str(step[3]) for step in steps]


@dataclass
class Record:
    """The statements of every connection that is opened while the record is active."""

    statements: list[Statement] = field(default_factory=list)
    _is_on: bool = False

    def watch(self, connection: apsw.Connection) -> None:
        """Record the statements of a new connection."""

        def note(cursor: apsw.Cursor, sql: str, values: Any) -> bool:
            if self._is_on:
                self.statements.append(Statement(connection, connection.filename, sql, copy(values) or None))
            return True

        connection.exec_trace = note

    @contextmanager
    def listening(self) -> Iterator[list[Statement]]:
        """Yield the list of statements that run inside the block."""
        self.statements.clear()
        self._is_on = True
        try:
            yield self.statements
        finally:
            self._is_on = False

    def sql(self) -> list[str]:
        """The text of the recorded statements, without extra blanks."""
        return [" ".join(statement.sql.split()) for statement in self.statements]


@contextmanager
def recorded() -> Iterator[Record]:
    """Record every statement of every connection that is opened inside the block."""
    record = Record()
    apsw.connection_hooks.append(record.watch)
    try:
        yield record
    finally:
        apsw.connection_hooks.remove(record.watch)
