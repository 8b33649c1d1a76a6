"""Statements on their way to the server and back: several in one round trip, and none parsed twice by the server.

This talks through psycopg's connections, but below its cursors, which take longer over a statement than the server.
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

from hermes.state.binding import bind
from hermes.state.engine import Columns, Values
from hermes.state.rows import MARK, MAX_INTEGER, Stored
from hermes.state.server.faults import ConnectionLost, ServerError, StatementTimeout
from hermes.state.server.sql_parameters import parse

if TYPE_CHECKING:
    from psycopg.abc import Buffer
    from psycopg.pq.abc import PGresult

Connection = psycopg.Connection[Any]
Parameters = Sequence[bytes | None]

MOST_PREPARED = 300
"""So many statements of a connection are kept by the server."""
MOST_PARAMETERS = 64
"""A statement with more is one of many of different length."""
OUTDATED = ("0A000", "26000")
"""What the server says when a statement that it keeps does not fit its table any more, or when it does not keep it."""
CANCEL_S = 5.0
"""How long the server may take to call a statement off."""

_END = int(pq.ExecStatus.PIPELINE_SYNC)
_FAILED, _SKIPPED = int(pq.ExecStatus.FATAL_ERROR), int(pq.ExecStatus.PIPELINE_ABORTED)
_IDLE, _IN_ERROR = int(pq.TransactionStatus.IDLE), int(pq.TransactionStatus.INERROR)
_MARK = MARK.encode()


class StatementText:
    """A statement as the server wants it, and the names of its parameters by number; the same one for the same SQL."""

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
    """A statement with `$1` for the first of its names, and so on."""
    statement = parse(sql)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(statement.names), start=1)}
    placeholders = [f"${numbers[name]}" for name in statement.names]
    parts = [part for pair in zip(statement.pieces, [*placeholders, ""], strict=True) for part in pair]
    return StatementText("".join(parts).encode(), tuple(numbers))


def bind_statement(sql: str, values: Mapping[str, Any]) -> BoundStatement:
    """A statement with values; of what type each is, is for the server to see from its place."""
    text = statement_text(sql)
    try:
        # What is usual is encoded without a word; everything else is bound as every engine does it.
        parameters = [_ENCODERS[type(values[name])](values[name]) for name in text.names]
    except (KeyError, UnicodeEncodeError):
        return BoundStatement(text, _bound(text, values))
    said = b"".join([each for each in parameters if each])
    return BoundStatement(text, _bound(text, values) if b"\0" in said or _MARK in said else parameters)


def _bound(text: StatementText, values: Mapping[str, Any]) -> Parameters:
    bound = bind({name: values[name] for name in text.names})
    return [_encoded(bound[name]) for name in text.names]


def _encoded(value: Any) -> bytes | None:
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
    """Sums of whole numbers are whole numbers."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _FlagLoader(Loader):
    """Truth is a number, as it is in a column."""

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
        """Whether every statement that was sent has been answered."""
        self.may_prepare = False
        """Whether the server may be asked to keep statements."""
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
        """Since when the server runs that this is connected to."""
        return str(self.rows(self.execute([_STARTED])[0])[0][0])

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open, perhaps a failed one."""
        return self._pgconn.transaction_status != _IDLE

    @property
    def has_failed(self) -> bool:
        """Whether a transaction is open in which a statement failed, so that it can only be undone."""
        return self._pgconn.transaction_status == _IN_ERROR

    def enter_pipeline(self) -> None:
        """Have the connection for statements of ours alone."""
        self._was_autocommit = self.connection.autocommit
        if not self._was_autocommit:
            self.connection.set_autocommit(True)
        self._pgconn.enter_pipeline_mode()

    def leave_pipeline(self) -> None:
        """Leave the connection as it was found."""
        self._pgconn.exit_pipeline_mode()
        if not self._was_autocommit:
            self.connection.set_autocommit(False)

    def execute(self, statements: Sequence[BoundStatement], timeout_s: float | None = None) -> list[PGresult]:
        """Send statements together and answer the result of each; if one fails, those after it are not executed.

        The server may take so long to say something; then what it does is called off.
        """
        self.is_sound = False
        try:
            preparing = self._send(statements)
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
        """Send statements; answers which results will say that one is kept by the server, and under which name."""
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
        """The results of the statements themselves; those that the server keeps now are noted."""
        for place, (text, name) in preparing.items():
            if place < len(results) and results[place].status == pq.ExecStatus.COMMAND_OK:
                self._prepared[text] = name
        return [result for place, result in enumerate(results) if place not in preparing or result.status == _FAILED]

    def _should_prepare(self, text: StatementText) -> bool:
        """Whether the server should keep a statement, because it is not used for the first time."""
        if not self.may_prepare or len(self._prepared) >= MOST_PREPARED or len(text.names) > MOST_PARAMETERS:
            return False
        if len(self._uses) > 4 * MOST_PREPARED:
            self._uses.clear()
        uses = self._uses[text] = self._uses.get(text, 0) + 1
        return uses > 1

    def _collect(self, timeout_s: float | None) -> list[PGresult]:
        """The results up to the end of what was sent."""
        pgconn = self._pgconn
        limit_ms = None if timeout_s is None else timeout_s * 1000
        is_cancelled = False
        results: list[PGresult] = []
        if pgconn.flush():
            self._send_rest(limit_ms)
        while True:
            while pgconn.is_busy():
                if self._to_read.poll(limit_ms):
                    pgconn.consume_input()
                elif is_cancelled:
                    raise ConnectionLost("the server does not answer")
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
            raise StatementTimeout(f"a statement took longer than {timeout_s:g} s")
        return results

    def _send_rest(self, limit_ms: float | None) -> None:
        """Send what there was no room for at first."""
        while self._pgconn.flush():
            events = self._to_write.poll(limit_ms)
            if not events:
                raise ConnectionLost("the server does not read what it is sent")
            # The server may be waiting for its answers to be read before it reads on.
            if events[0][1] & select.POLLIN:
                self._pgconn.consume_input()

    def _refusal(self, results: Sequence[PGresult]) -> ServerError:
        """What the server says of the first statement that failed."""
        failed = next((result for result in results if result.status == _FAILED), results[-1])
        code = (failed.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode(errors="replace")
        message = failed.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or failed.error_message
        if code in OUTDATED:
            self._prepared.clear()
        return ServerError(code, message.decode(errors="replace").strip())

    def _cancel(self) -> None:
        with contextlib.suppress(psycopg.Error):  # then it is not called off, and soon counts as lost
            self.connection.cancel_safe(timeout=CANCEL_S)
