"""What SQLite is really asked: the statements that operations run, and how SQLite goes about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import apsw


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as it was run, and the connection and file it was run on."""

    connection: apsw.Connection
    file: str
    sql: str
    values: Any

    def plan(self) -> list[str]:
        """How SQLite would go about it again, one step a line."""
        plain = apsw.Connection(self.file, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            steps = plain.execute(f"EXPLAIN QUERY PLAN {self.sql}", self.values).fetchall()
        finally:
            plain.close()
        return [str(step[3]) for step in steps]


@dataclass
class Record:
    """The statements of every connection that is opened while it is kept."""

    statements: list[Statement] = field(default_factory=list)
    _is_on: bool = False

    def watch(self, connection: apsw.Connection) -> None:
        """Listen to a new connection."""

        def note(cursor: apsw.Cursor, sql: str, values: Any) -> bool:
            if self._is_on:
                self.statements.append(
                    Statement(connection, connection.filename, sql, dict(values) if values else None)
                )
            return True

        connection.exec_trace = note

    @contextmanager
    def listening(self) -> Iterator[list[Statement]]:
        """The statements that run inside the block."""
        self.statements.clear()
        self._is_on = True
        try:
            yield self.statements
        finally:
            self._is_on = False

    def sql(self) -> list[str]:
        """The text of what was heard, without needless blanks."""
        return [" ".join(statement.sql.split()) for statement in self.statements]


@contextmanager
def recorded() -> Iterator[Record]:
    """Hear every statement of every connection that is opened inside the block."""
    record = Record()
    apsw.connection_hooks.append(record.watch)
    try:
        yield record
    finally:
        apsw.connection_hooks.remove(record.watch)
