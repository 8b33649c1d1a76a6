"""A connection while one thread uses it: the statements of one transaction, and PostgreSQL's SQL phrases."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.state.engine import Dialect, Guard, Table, Values
from hermes.state.operations import chunks, insert_into
from hermes.state.postgres.connection.pipeline import BoundStatement, DriverConnection, bind_statement, statement_text
from hermes.state.server.faults import CommitUnknown, ConnectionLost, Fault, PoolerBusy, ServerError, StatementTimeout
from hermes.state.server.transaction import ServerTransaction
from hermes.state.sql.dialect import CommonDialect

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

MANY = 200
"""How many statements are sent together."""
MUCH = 1 << 20
"""This many bytes are sent at once, even if there are fewer statements."""

LONG_S = 1.0
"""Behind a pooler, a transaction that takes this long to begin waits for a connection to the server."""

LANES_CHANNEL = "hermes_lanes"
"""The channel on which processes learn that work waits in a lane."""

_COMMIT, _ROLL_BACK = BoundStatement(statement_text("COMMIT")), BoundStatement(statement_text("ROLLBACK"))
_BEGIN = BoundStatement(statement_text("BEGIN ISOLATION LEVEL READ COMMITTED"))
_BEGIN_READING = BoundStatement(statement_text("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
_NUMBER = BoundStatement(statement_text("SELECT CAST(pg_current_xact_id_if_assigned() AS text)"))
# The expressions outside of the parentheses are evaluated when the row is locked.
_HELD = "SELECT CAST(pg_current_xact_id() AS text), nextval('messages_id_seq'), held.* FROM ({}) AS held"
# A second statement of the same round trip reads the key of the locked row from this setting.
_LOCKED = """SELECT CAST(pg_current_xact_id() AS text), set_config('hermes.locked', held.locked, true), held.*
             FROM ({}) AS held"""
_LOCKED_KEY = "current_setting('hermes.locked', true)"
_SEVERAL = "LEFT JOIN generate_series(1, CAST(:count AS bigint)) AS number ON true"
_MARK, _BACK_TO_MARK = (
    BoundStatement(statement_text("SAVEPOINT probe")),
    BoundStatement(statement_text("ROLLBACK TO SAVEPOINT probe")),
)
# Without the row this divides by zero, so the server skips all that was sent together with it, also a commit.
_REQUIRED = "SELECT 1 / COUNT(*) FROM (SELECT 1 FROM {} WHERE {} FOR NO KEY UPDATE) AS held"
_DIVISION_BY_ZERO = "22012"
# Large estimates make the server compile a query, which takes longer than any of ours.
_LIMITS = "SELECT set_config('statement_timeout', :milliseconds, true), set_config('jit', 'off', true)"


class PostgresDialect(CommonDialect):
    """PostgreSQL's SQL phrases."""

    # Keys never change, so transactions that only refer to a row need not wait for those that change it.
    for_update = "FOR NO KEY UPDATE"
    skip_locked = "FOR NO KEY UPDATE SKIP LOCKED"
    # The time of now() is that of the beginning of the transaction, which may have waited since.
    now = "CAST(EXTRACT(epoch FROM clock_timestamp()) AS double precision)"
    notify_lanes = f"SELECT pg_notify('{LANES_CHANNEL}', current_schema() || ':' || CAST(:holder AS text))"
    given_uid_condition = "AND uid NOT LIKE '~%'"
    has_indexed_correlation = True
    has_telegram_topics = "to_regclass('telegram_dm_topic_bindings') IS NOT NULL"
    counts_in_index = False
    raise_next_id = """SELECT setval('messages_id_seq', :last)
                       WHERE (SELECT last_value FROM messages_id_seq) <= CAST(:last AS bigint)"""

    def starts_with(self, column: str, parameter: str) -> str:
        """A case-sensitive prefix condition that walks the column's index."""
        return f"({column} >= :{parameter} AND {column} < :{parameter} || chr(1114111))"

    def is_among(self, column: str, numbers: Sequence[int]) -> tuple[str, Mapping[str, Any]]:
        """A condition with all numbers in one parameter: the server prepares one statement, however many they are."""
        return f"{column} = ANY(CAST(:numbers AS bigint[]))", {"numbers": f"{{{','.join(map(str, numbers))}}}"}


DIALECT: Dialect = PostgresDialect()


class PostgresTransaction(ServerTransaction):
    """Runs the statements of one transaction at a time on a connection."""

    dialect = DIALECT

    def __init__(
        self,
        driver: DriverConnection,
        opening: Sequence[BoundStatement],
        *,
        is_behind_pooler: bool = False,
        needs_begin: bool = True,
    ) -> None:
        self.driver = driver
        self._is_behind_pooler, self._needs_begin = is_behind_pooler, needs_begin
        self.newest_message = 0
        self.is_repeat = False
        self._opening = opening
        """The statements at the beginning of every transaction."""
        self._waiting: list[BoundStatement] = []
        """Statements that are sent together with the next one."""
        self._waiting_bytes = 0
        self._guard: Guard | None = None
        """The guard among the statements that wait."""
        self._is_begun = False
        self._token: str | None = None
        self._timeout_s: float | None = None

    def begin(self, *, read_only: bool, timeout_s: float | None, is_repeat: bool = False) -> None:
        """Start a transaction, together with its first statement."""
        self._is_begun = False
        self._waiting = [_BEGIN_READING if read_only else _BEGIN, *self._opening]
        self._waiting_bytes, self._guard = 0, None
        self._token, self._timeout_s, self.newest_message, self.is_repeat = None, timeout_s, 0, is_repeat

    def commit(self) -> None:
        """Commit; if the connection breaks meanwhile, it is not known whether that was done."""
        if self._is_begun or self._guard is not None:
            self._send_and_commit([])

    def run_and_commit(self, sql: str, /, **values: Any) -> list[Values]:
        """Execute the only statement of the transaction and commit, in one round trip; return its rows."""
        statement = bind_statement(sql, values)
        if self._needs_begin or self._guard is not None:
            return self.driver.rows(self._send_and_commit([statement])[-2])
        # Without BEGIN and COMMIT, each of which costs as much as a third of the statement: the server makes a
        # transaction of what is sent together.
        self._waiting = []
        try:
            return self.driver.rows(self.driver.execute([statement], self._timeout_s)[0])
        except (ConnectionLost, StatementTimeout) as exc:
            if self.driver.is_sound and self.driver.was_refused:
                raise  # the statement was cancelled
            self.driver.is_sound = False
            raise CommitUnknown(None, str(exc)) from None

    def roll_back(self) -> None:
        """Roll back; if the connection is broken, the server does that on its own."""
        self._waiting = []
        if self.driver.is_sound and self.driver.is_in_transaction:
            with contextlib.suppress(Fault):
                self.driver.execute([_ROLL_BACK], self._timeout_s)

    def rows(self, sql: str, /, **values: Any) -> list[Values]:
        """All rows of a query."""
        return self.driver.rows(self._query(sql, values))

    def table(self, sql: str, /, **values: Any) -> Table:
        """The column names of a query and all its rows."""
        return self.tables([(sql, values)])[0]

    def tables(self, queries: Sequence[tuple[str, Mapping[str, Any]]], /) -> list[Table]:
        """The same for each of several queries, in one round trip."""
        bound = [bind_statement(sql, values) for sql, values in queries]
        results = self._send(bound)[-len(bound) :] if bound else []
        return [(self.driver.columns(result), self.driver.rows(result)) for result in results]

    def probe(self, timeout_s: float, /, *queries: tuple[str, dict[str, Any]]) -> list[list[Values]]:
        """All rows of queries that may fail, or be cancelled by the server, without harm to the transaction."""
        bound = [bind_statement(sql, values) for sql, values in queries]
        limits = bind_statement(_LIMITS, {"milliseconds": str(max(1, round(timeout_s * 1000)))})
        try:
            results = self._send([_MARK, limits, *bound, _BACK_TO_MARK])
        except ServerError:
            self._send([_BACK_TO_MARK])
            raise
        return [self.driver.rows(result) for result in results[-1 - len(bound) : -1]]

    def run(self, sql: str, /, **values: Any) -> int:
        """Execute one statement and return how many rows it changed."""
        return self._change(sql, values).command_tuples or 0

    def send(self, sql: str, /, **values: Any) -> None:
        """Execute one statement together with the next ones, or with the commit."""
        if self._token is None:
            self.run(sql, **values)
            return
        waiting = bind_statement(sql, values)
        self._waiting.append(waiting)
        self._waiting_bytes += sum([len(each) for each in waiting.parameters if each])
        if len(self._waiting) >= MANY or self._waiting_bytes >= MUCH:
            self._send([])

    def require(self, guard: Guard, /) -> None:
        """Lock a row together with the next statement, or with the commit."""
        if self._guard is not None:
            self._send([])  # so that an error belongs to one guard
        self._guard = guard
        self._waiting.append(bind_statement(_REQUIRED.format(guard.table, guard.condition), guard.values))

    def lock_and_number(self, sql: str, count: int, /, **values: Any) -> tuple[Values | None, Sequence[int]]:
        """The first row of a query that locks it, and ids for messages: only the lock decides the order of writers."""
        held = _HELD.format(sql)
        rows = self.rows(held, **values) if count == 1 else self.rows(f"{held} {_SEVERAL}", count=count, **values)
        if not rows:
            return None, ()
        if self._token is None:
            self._token = self._token_of(rows[0][0])
        return rows[0][2:], [row[1] for row in rows[:count]]

    def lock_and_read(self, lock: str, read: str, /, **values: Any) -> tuple[Values | None, list[Values]]:
        """The first row of a query that locks it, and the rows of a second query, in one round trip.

        The second statement has a snapshot of its own, taken when the row is locked.
        """
        bound = [bind_statement(sql, values) for sql in (_LOCKED.format(lock), read.replace(":locked", _LOCKED_KEY))]
        held, found = [self.driver.rows(result) for result in self._send(bound)[-2:]]
        if not held:
            return None, []
        if self._token is None:
            self._token = self._token_of(held[0][0])
        return held[0][2:], found

    def insert_messages(self, rows: Sequence[Mapping[str, Any]], /) -> Sequence[int]:
        """Insert messages, each with its own columns, and return their ids."""
        ids: list[int] = []
        for row in rows:
            sql = f"{insert_into('messages', tuple(row))} RETURNING id, CAST(pg_current_xact_id() AS text)"
            ((number, transaction),) = self.rows(sql, **row)
            if self._token is None:
                self._token = self._token_of(transaction)
            ids.append(number)
        return ids

    def run_many(self, sql: str, many: Sequence[dict[str, Any]], /) -> None:
        """Execute one statement for each set of values."""
        for some in chunks(many, MANY):
            self._send([bind_statement(sql, values) for values in some])

    def run_together(self, changes: Sequence[tuple[str, dict[str, Any]]], meanwhile: Callable[[], None]) -> None:
        """Execute statements in one round trip, and call `meanwhile` while the server works on them."""
        statements = [bind_statement(sql, values) for sql, values in changes]
        if self._token is None:
            statements.append(_NUMBER)
        results = self._send(statements, meanwhile)
        if self._token is None:
            self._token = self._token_of(self.driver.rows(results[-1])[0][0])

    def _query(self, sql: str, values: dict[str, Any]) -> PGresult:
        return self._send([bind_statement(sql, values)])[-1]

    def _change(self, sql: str, values: dict[str, Any]) -> PGresult:
        if self._token is not None:
            return self._query(sql, values)
        result, number = self._send([bind_statement(sql, values), _NUMBER])[-2:]
        self._token = self._token_of(self.driver.rows(number)[0][0])
        return result

    def _token_of(self, number: str | None) -> str | None:
        """The token with which the server can tell later what became of a transaction; None before its first change.

        A server gives the same number twice only after a restart.
        """
        return None if number is None else f"{number}@{self.driver.started}"

    def _send_and_commit(self, statements: list[BoundStatement]) -> list[PGresult]:
        try:
            results = self._send([*statements, _COMMIT])
        except (ConnectionLost, StatementTimeout) as exc:
            if self.driver.is_sound and self.driver.has_failed:
                raise  # a statement before it was cancelled
            self.driver.is_sound = False
            raise CommitUnknown(self._token, str(exc)) from None
        if results[-1].command_status != b"COMMIT":
            raise ServerError("25P02", "the transaction was rolled back because a statement in it had failed")
        return results

    def _send(self, statements: list[BoundStatement], meanwhile: Callable[[], None] | None = None) -> list[PGresult]:
        guard, self._guard = self._guard, None
        try:
            return self._send_together(statements, meanwhile)
        except ServerError as fault:
            if guard is not None and fault.code == _DIVISION_BY_ZERO:
                raise guard.error() from None
            raise

    def _send_together(self, statements: list[BoundStatement], meanwhile: Callable[[], None] | None) -> list[PGresult]:
        is_first, self._is_begun = not self._is_begun, True
        together, self._waiting, self._waiting_bytes = [*self._waiting, *statements], [], 0
        if not is_first or not self._is_behind_pooler:
            return self.driver.execute(together, self._timeout_s, meanwhile)
        began = time.monotonic()
        try:
            return self.driver.execute(together, self._timeout_s, meanwhile)
        except (ConnectionLost, StatementTimeout) as fault:
            # A server that waits for a lock has begun the transaction, and reports that when it is cancelled. A pooler
            # that hangs up after a while sends the reason, but libpq does not pass it on.
            if self.driver.has_failed or time.monotonic() - began < LONG_S:
                raise
            self.driver.is_sound = False
            raise PoolerBusy(str(fault)) from None
