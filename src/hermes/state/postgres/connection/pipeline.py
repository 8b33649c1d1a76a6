"""Sending statements to the server and reading the results: several in one round trip, and prepared for reuse.

This uses psycopg's connections, but not its cursors, which take longer for a statement than the server does.
"""

from __future__ import annotations

import contextlib
import itertools
import select
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import AdaptersMap, Loader, Transformer

from hermes.state.engine import Columns, Values
from hermes.state.rows import MARK, MAX_INTEGER, Stored
from hermes.state.server.faults import ConnectionLost, ServerError, StatementTimeout
from hermes.state.server.sql_parameters import parse
from hermes.state.sql.binding import bind

if TYPE_CHECKING:
    from psycopg.abc import Buffer
    from psycopg.pq.abc import PGresult

Connection = psycopg.Connection[Any]
Parameters = Sequence[bytes | None]

MOST_PREPARED = 300
"""How many prepared statements of a connection the server keeps."""
MOST_PARAMETERS = 64
"""A statement with more parameters is probably one of many with different lengths, and is not prepared."""
OUTDATED = ("0A000", "26000")
"""The codes for a prepared statement that no longer fits its table, or that does not exist."""
CANCEL_S = 5.0
"""How long the server may take to cancel a statement."""

_END = int(pq.ExecStatus.PIPELINE_SYNC)
_FAILED, _SKIPPED = int(pq.ExecStatus.FATAL_ERROR), int(pq.ExecStatus.PIPELINE_ABORTED)
_IDLE, _IN_ERROR = int(pq.TransactionStatus.IDLE), int(pq.TransactionStatus.INERROR)
_MARK = MARK.encode()


class StatementText:
    """The SQL of a statement for the server, and the names of its parameters by number; one object for the same SQL."""

    __slots__ = ("names", "sql")

    def __init__(self, sql: bytes, names: tuple[str, ...]) -> None:
        self.sql = sql
        self.names = names


class BoundStatement(NamedTuple):
    """A statement with its values."""

    text: StatementText
    parameters: Parameters = ()


@lru_cache(maxsize=1_024)
def statement_text(sql: str) -> StatementText:
    """Return a statement with `$1` for the first of its names, and so on."""
    statement = parse(sql)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(statement.names), start=1)}
    placeholders = [f"${numbers[name]}" for name in statement.names]
    parts = [part for pair in zip(statement.pieces, [*placeholders, ""], strict=True) for part in pair]
    return StatementText("".join(parts).encode(), tuple(numbers))


def bind_statement(sql: str, values: Mapping[str, Any]) -> BoundStatement:
    """Return a statement with values; the server infers the type of each from its position."""
    text = statement_text(sql)
    try:
        # Common types are encoded directly; everything else is bound like in every engine.
        parameters = [_ENCODERS[type(values[name])](values[name]) for name in text.names]
    except (KeyError, UnicodeEncodeError):
        return BoundStatement(text, _bound(text, values))
    encoded = b"".join([each for each in parameters if each])
    return BoundStatement(text, _bound(text, values) if b"\0" in encoded or _MARK in encoded else parameters)


def _bound(text: StatementText, values: Mapping[str, Any]) -> Parameters:
    bound = bind({name: values[name] for name in text.names})
    return [_encode(bound[name]) for name in text.names]


def _encode(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    return repr(value).encode() if isinstance(value, float) else b"%d" % value


def _encoded_integer(value: int) -> bytes:
    if not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise KeyError(value)
    return b"%d" % value


_ENCODERS: dict[type[Any], Callable[[Any], bytes | None]] = {
    str: str.encode,
    Stored: str.encode,
    int: _encoded_integer,
    float: lambda value: repr(value).encode(),
    type(None): lambda _: None,
}


STARTED = "CAST(EXTRACT(epoch FROM pg_postmaster_start_time()) AS text)"
_STARTED = BoundStatement(statement_text(f"SELECT {STARTED}"))


class _WholeNumberLoader(Loader):
    """Loads sums of whole numbers as whole numbers."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _FlagLoader(Loader):
    """Loads booleans as 0 and 1, as in columns."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


def _loaders() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_loader("numeric", _WholeNumberLoader)
    adapters.register_loader("bool", _FlagLoader)
    return adapters


_LOADERS = _loaders()


class DriverConnection:
    """One connection to the server."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.is_sound = True
        """Whether every statement that was sent has its result."""
        self.was_refused = False
        """Whether the last statement of those that were cancelled has failed, so that it changed nothing."""
        self.may_prepare = False
        """Whether statements may be prepared on the server."""
        self._was_autocommit = True
        self._names = itertools.count()
        self._to_read, self._to_write = select.poll(), select.poll()
        self._to_read.register(connection.pgconn.socket, select.POLLIN)
        self._to_write.register(connection.pgconn.socket, select.POLLIN | select.POLLOUT)
        self._pgconn = connection.pgconn
        self._transformer = Transformer(_LOADERS)
        self._uses: dict[StatementText, int] = {}
        self._prepared: dict[StatementText, bytes] = {}

    @cached_property
    def started(self) -> str:
        """When the server of this connection was started."""
        return str(self.rows(self.execute([_STARTED])[0])[0][0])

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open, perhaps a failed one."""
        return self._pgconn.transaction_status != _IDLE

    @property
    def has_failed(self) -> bool:
        """Whether a transaction is open in which a statement failed, so that it can only be rolled back."""
        return self._pgconn.transaction_status == _IN_ERROR

    def enter_pipeline(self) -> None:
        """Prepare the connection for statements of this module only."""
        self._was_autocommit = self.connection.autocommit
        if not self._was_autocommit:
            self.connection.set_autocommit(True)
        self._pgconn.enter_pipeline_mode()

    def leave_pipeline(self) -> None:
        """Restore the previous state of the connection."""
        self._pgconn.exit_pipeline_mode()
        if not self._was_autocommit:
            self.connection.set_autocommit(False)

    def execute(
        self,
        statements: Sequence[BoundStatement],
        timeout_s: float | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> list[PGresult]:
        """Send statements together and return the result of each; if one fails, those after it are not executed.

        `meanwhile` is called while the server executes them. If the server sends nothing for `timeout_s` after that,
        the statements are cancelled.
        """
        self.is_sound = False
        try:
            preparing = self._send(statements)
            self._flush(timeout_s)
            if meanwhile is not None:
                meanwhile()
            results = self._collect(timeout_s)
        except psycopg.Error as exc:
            raise ConnectionLost(str(exc).strip()) from None
        self.is_sound = True
        if preparing:
            results = self._without_prepares(results, preparing)
        if results[-1].status in (_FAILED, _SKIPPED):
            raise self._refusal(results)
        return results

    def rows(self, result: PGresult) -> list[Values]:
        """All rows of a result."""
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def columns(self, result: PGresult) -> Columns:
        """The names of a result's columns."""
        return [(result.fname(number) or b"").decode() for number in range(result.nfields)]

    def _send(self, statements: Sequence[BoundStatement]) -> dict[int, tuple[StatementText, bytes]]:
        """Send statements; return which results belong to PREPARE commands, with the statement and its name."""
        pgconn, prepared = self._pgconn, self._prepared
        preparing: dict[int, tuple[StatementText, bytes]] = {}
        for number, (text, parameters) in enumerate(statements):
            name = prepared.get(text)
            if name is None and preparing:
                name = next((name for kept, name in preparing.values() if kept is text), None)
            if name is None and self._should_prepare(text):
                name = b"hermes_%d" % next(self._names)
                pgconn.send_prepare(name, text.sql)
                preparing[number + len(preparing)] = text, name
            if name is None:
                pgconn.send_query_params(text.sql, parameters)
            else:
                pgconn.send_query_prepared(name, parameters)
        pgconn.pipeline_sync()
        return preparing

    def _without_prepares(
        self, results: list[PGresult], preparing: dict[int, tuple[StatementText, bytes]]
    ) -> list[PGresult]:
        """Return the results of the statements themselves, and note those that the server has prepared."""
        for place, (text, name) in preparing.items():
            if place < len(results) and results[place].status == pq.ExecStatus.COMMAND_OK:
                self._prepared[text] = name
        return [result for place, result in enumerate(results) if place not in preparing or result.status == _FAILED]

    def _should_prepare(self, text: StatementText) -> bool:
        """Whether to prepare a statement, because it is not used for the first time."""
        if not self.may_prepare or len(self._prepared) >= MOST_PREPARED or len(text.names) > MOST_PARAMETERS:
            return False
        if len(self._uses) > 4 * MOST_PREPARED:
            self._uses.clear()
        uses = self._uses[text] = self._uses.get(text, 0) + 1
        return uses > 1

    def _collect(self, timeout_s: float | None) -> list[PGresult]:
        """Read the results of everything that was sent."""
        pgconn = self._pgconn
        limit_ms = None if timeout_s is None else timeout_s * 1000
        is_cancelled = False
        results: list[PGresult] = []
        while True:
            while pgconn.is_busy():
                if self._to_read.poll(limit_ms):
                    pgconn.consume_input()
                elif is_cancelled:
                    raise ConnectionLost("the server does not respond")
                else:
                    self._cancel()
                    is_cancelled, limit_ms = True, CANCEL_S * 1000
            result = pgconn.get_result()
            if result is None:
                continue
            if result.status == _END:
                break
            results.append(result)
        if is_cancelled:
            self.is_sound = True
            self.was_refused = bool(results) and results[-1].status in (_FAILED, _SKIPPED)
            raise StatementTimeout(f"a statement took longer than {timeout_s:g} s")
        return results

    def _flush(self, timeout_s: float | None) -> None:
        """Send the data that is still buffered."""
        limit_ms = None if timeout_s is None else timeout_s * 1000
        while self._pgconn.flush():
            events = self._to_write.poll(limit_ms)
            if not events:
                raise ConnectionLost("the server does not read what was sent")
            # The server may be waiting until its results are read before it reads more.
            if events[0][1] & select.POLLIN:
                self._pgconn.consume_input()

    def _refusal(self, results: Sequence[PGresult]) -> ServerError:
        """Return the error of the first statement that failed."""
        failed = next((result for result in results if result.status == _FAILED), results[-1])
        code = (failed.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode(errors="replace")
        message = failed.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or failed.error_message
        if code in OUTDATED:
            self._prepared.clear()
        return ServerError(code, message.decode(errors="replace").strip())

    def _cancel(self) -> None:
        with contextlib.suppress(psycopg.Error):  # then it is not cancelled, and the connection soon counts as lost
            self.connection.cancel_safe(timeout=CANCEL_S)
