"""A connection while one thread uses it: the statements of one transaction, and MySQL's and MariaDB's SQL phrases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes.state.engine import Columns, Dialect, Guard, Table, Values
from hermes.state.mysql import errors
from hermes.state.mysql.connection.bulk_insert import parse_insert, statements
from hermes.state.mysql.connection.server_info import Server
from hermes.state.mysql.connection.statements import DriverConnection, StatementResult, literal, literals, render
from hermes.state.mysql.search.document import Blob
from hermes.state.operations import chunks
from hermes.state.rows import encode_text
from hermes.state.server.faults import CommitUnknown, ConnectionLost, Fault, ServerError
from hermes.state.server.transaction import ServerTransaction
from hermes.state.sql.dialect import is_listed

MANY = 100
"""How many statements are sent together."""

_BEGIN = ("START TRANSACTION",)
_BEGIN_READING = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION READ ONLY")
# Without the row the sum is out of range, so the server skips all that was sent together with it, also a commit.
_REQUIRED = "SELECT 9223372036854775807 + IF(COUNT(*) > 0, 0, 1) FROM {} WHERE {} FOR UPDATE"
# The rows of one statement have ids without foreign ids between them, but not always consecutive ones.
_ADDED = """SELECT id FROM messages FORCE INDEX (idx_messages_order)
            WHERE session_id = :id AND id >= LAST_INSERT_ID() ORDER BY id LIMIT :count"""
_LAST = "CHAR(0xF48FBFBF USING utf8mb4)"
"""The last character: no other sorts after it."""
_KEYS = {
    "sessions": "PRIMARY",
    "compression_locks": "PRIMARY",
    "messages": "idx_messages_order",
    "session_tools": "idx_session_tools",
    "rewinds": "idx_rewinds_session",
    "usage_events": "idx_usage_events_session",
    "pending_links": "PRIMARY",
    "stale_index": "PRIMARY",
    "deleted_messages": "PRIMARY",
    "usage_days": "PRIMARY",
}
"""The index that finds a table's rows by their sessions, by their messages, or by their keys."""


class MySQLDialect:
    """The SQL phrases of MySQL and MariaDB."""

    for_update = "FOR UPDATE"
    skip_locked = "FOR UPDATE SKIP LOCKED"
    now = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) / 1e6)"
    notify_lanes = ""
    has_indexed_correlation = counts_in_index = False
    has_telegram_topics = """EXISTS (SELECT 1 FROM information_schema.tables
                                     WHERE table_schema = DATABASE() AND table_name = 'telegram_dm_topic_bindings')"""
    raise_next_id = ""
    # Uids that callers gave have an index by their hash: with the session's id they may be too long for an index.
    given_uid_condition = "AND uid_key = UNHEX(SHA2(CONCAT(:id, CHAR(0), :uid), 256))"

    def insert_or_ignore(self, table: str, columns: Columns) -> str:
        """An INSERT of one row that does nothing when a unique key is taken."""
        # IGNORE would also cut values.
        return f"{_insert(table, columns)} ON DUPLICATE KEY UPDATE {columns[0]} = {table}.{columns[0]}"

    def upsert(self, table: str, key: Columns, columns: Columns, add: Columns = ()) -> str:
        """An INSERT of one row that overwrites (or, for `add`, increases) the other columns when the key is taken."""
        changes = [f'"{column}" = VALUES("{column}")' for column in columns]
        changes += [f'"{column}" = {table}."{column}" + VALUES("{column}")' for column in add]
        return f"{_insert(table, [*key, *columns, *add])} ON DUPLICATE KEY UPDATE {', '.join(changes)}"

    def by_key(self, table: str, alias: str = "") -> str:
        """A table in a query for a session: without the hint, a server may read it from the first row."""
        return f"{table} {alias} FORCE INDEX ({_KEYS[table]})"

    def from_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """The end of a query for the rows in which a column has one of some parameters."""
        # With a list, the server reads a short table completely, and waits for rows that others have locked.
        named = " UNION ALL ".join(f"SELECT :{parameter} AS named" for parameter in parameters)
        return f"FROM ({named}) taken STRAIGHT_JOIN {self.by_key(table)} ON {table}.{column} = taken.named"

    def delete_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """A DELETE of the same rows."""
        return f"DELETE {table} {self.from_where_in(table, column, parameters)}"

    def is_among(self, column: str, numbers: Sequence[int]) -> tuple[str, Mapping[str, Any]]:
        """A condition that an integer column has one of some numbers, and its values."""
        return is_listed(column, numbers)

    def starts_with(self, column: str, parameter: str) -> str:
        """A case-sensitive prefix condition that walks the column's index."""
        return f"({column} >= :{parameter} AND {column} < CONCAT(:{parameter}, {_LAST}))"


def _insert(table: str, columns: Columns) -> str:
    named = ", ".join(f'"{column}"' for column in columns)
    return f"INSERT INTO {table} ({named}) VALUES ({', '.join(f':{column}' for column in columns)})"


DIALECT: Dialect = MySQLDialect()


class MySQLTransaction(ServerTransaction):
    """Runs the statements of one transaction at a time on a connection."""

    dialect = DIALECT

    def __init__(self, connection: DriverConnection, server: Server) -> None:
        self.connection = connection
        self.newest_message = 0
        self.is_repeat = False
        self._server = server
        self._waiting: list[str] = []
        """Statements that are sent together with the next one."""
        self._guard: Guard | None = None
        """The guard among the statements that wait."""
        self._is_begun = False
        self._has_changed = False

    def begin(self, *, read_only: bool, timeout_s: float | None, is_repeat: bool = False) -> None:
        """Start a transaction, together with its first statement; the connection has the time limit."""
        self._waiting = [*(_BEGIN_READING if read_only else _BEGIN)]
        self._is_begun, self._has_changed, self._guard = False, False, None
        self.newest_message, self.is_repeat = 0, is_repeat

    def commit(self) -> None:
        """Commit; if the connection breaks meanwhile, the server cannot be asked whether it was done."""
        if not self._is_begun and not self._has_changed and self._guard is None:
            return
        try:
            self._send(["COMMIT"])
        except (ConnectionLost, ServerError) as exc:
            if isinstance(exc, ServerError) and exc.code != errors.COMMIT_FAILED:
                raise
            # The server rolls back the rest of the transaction, if there is any.
            self.connection.is_sound = False
            raise CommitUnknown("" if self._has_changed else None, str(exc)) from None

    def roll_back(self) -> None:
        """Roll back; if the connection is broken, the server does that on its own."""
        self._waiting = []
        if self.connection.is_sound and self.connection.is_in_transaction:
            with contextlib.suppress(Fault):
                self.connection.run("ROLLBACK")

    def rows(self, sql: str, /, **values: Any) -> list[Values]:
        """All rows of a query."""
        return self._query(sql, values).rows

    def table(self, sql: str, /, **values: Any) -> Table:
        """The column names of a query and all its rows."""
        return self.tables([(sql, values)])[0]

    def tables(self, queries: Sequence[tuple[str, Mapping[str, Any]]], /) -> list[Table]:
        """The same for each of several queries, in one round trip."""
        statements = [render(sql, values) for sql, values in queries]
        results = self._send(statements)[-len(statements) :] if statements else []
        return [(result.columns, result.rows) for result in results]

    def probe(self, timeout_s: float, sql: str, /, **values: Any) -> list[Values]:
        """All rows of a query that may fail, or be cancelled by the server, without harm to the transaction."""
        return self._send([self._server.with_time_limit(render(sql, values).strip(), timeout_s)])[-1].rows

    def run(self, sql: str, /, **values: Any) -> int:
        """Execute one statement and return how many rows it changed."""
        self._has_changed = True
        return self._query(sql, values).changed

    def send(self, sql: str, /, **values: Any) -> None:
        """Execute one statement together with the next ones, or with the commit."""
        self._has_changed = True
        self._waiting.append(render(sql, values))
        if len(self._waiting) > MANY:
            self._send([])

    def require(self, guard: Guard, /) -> None:
        """Lock a row together with the next statement, or with the commit; in a cluster, change it.

        A lock holds on one node only. A change fails if another node changes the row before the commit.
        """
        if self.connection.is_in_cluster:
            changed = f"UPDATE {guard.table} SET {guard.counter} = {guard.counter} + 1 WHERE {guard.condition}"
            if not self.run(changed, **guard.values):
                raise guard.error()
            return
        if self._guard is not None:
            self._send([])  # so that an error belongs to one guard
        self._guard = guard
        self._waiting.append(render(_REQUIRED.format(guard.table, guard.condition), guard.values))

    def lock_and_number(self, sql: str, count: int, /, **values: Any) -> tuple[Values | None, Sequence[int]]:
        """The first row of a query that locks it; the server numbers messages on insert."""
        return self.row(sql, **values), ()

    def lock_and_read(self, lock: str, read: str, /, **values: Any) -> tuple[Values | None, list[Values]]:
        """The first row of a query that locks it, and the rows of a second query that uses it."""
        held = self.row(lock, **values)
        return held, [] if held is None else self.rows(read, locked=held[0], **values)

    def insert_messages(self, rows: Sequence[Mapping[str, Any]], /) -> Sequence[int]:
        """Insert messages, with the default for a missing column, and return their ids."""
        self._has_changed = True
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        ids: list[int] = []
        for statement, count in statements(
            f"INSERT INTO messages ({', '.join(columns)})", (literals(columns, row) for row in rows)
        ):
            if count == 1:
                ids.append(self._send([statement])[-1].key)
                continue
            added = render(_ADDED, {"id": rows[0]["session_id"], "count": count})
            ids += [row[0] for row in self._send([statement, added])[-1].rows]
        return ids

    def run_many(self, sql: str, many: Sequence[dict[str, Any]], /) -> None:
        """Execute one statement for each set of values."""
        self._has_changed = True
        if (form := parse_insert(sql)) is not None:
            self._insert(form.start, (literals(form.names, values) for values in many), form.end)
            return
        for some in chunks(many, MANY):
            self._send([render(sql, values) for values in some])

    def insert_many(self, start: str, rows: Sequence[tuple[int | str | Blob, ...]], end: str = "") -> None:
        """Insert many rows with few statements: the text before VALUES, the values, and the text after."""
        self._has_changed = True
        self._insert(start, ([*map(_literal, row)] for row in rows), end)

    def _insert(self, start: str, rows: Iterable[Sequence[str]], end: str) -> None:
        for statement, _ in statements(start, rows, end):
            self._send([statement])

    def _query(self, sql: str, values: dict[str, Any]) -> StatementResult:
        return self._send([render(sql, values)])[-1]

    def _send(self, statements: list[str]) -> list[StatementResult]:
        self._is_begun = True
        together, self._waiting = [*self._waiting, *statements], []
        guard, self._guard = self._guard, None
        try:
            return self.connection.execute_all(together)
        except ServerError as fault:
            if guard is not None and fault.code == errors.OUT_OF_RANGE:
                raise guard.error() from None
            raise


def _literal(value: int | str | Blob) -> str:
    return literal(encode_text(value) if isinstance(value, str) else value)
