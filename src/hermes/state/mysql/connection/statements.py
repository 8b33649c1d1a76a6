"""Sending statements to the server and reading the results, several in one round trip where possible."""

from __future__ import annotations

import math
import re
import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pymysql  # type: ignore[import-untyped]
from pymysql.constants import CLIENT, FIELD_TYPE, SERVER_STATUS  # type: ignore[import-untyped]
from pymysql.converters import conversions  # type: ignore[import-untyped]
from pymysql.cursors import Cursor  # type: ignore[import-untyped]

from hermes.errors import InvalidValue
from hermes.state.engine import Columns, Values
from hermes.state.mysql import errors
from hermes.state.mysql.search.document import Blob
from hermes.state.server.faults import ConnectionLost, Fault, ServerError
from hermes.state.server.sql_parameters import Statement, parse
from hermes.state.sql.binding import bind

FLAGS = CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS
"""An UPDATE reports how many rows it matched, also unchanged ones; several statements may be sent together."""
MOST_TOGETHER = 262_144
"""Longer statements are sent one by one."""
PACKET_HEADER = 1_024
"""The bytes that a statement needs in a packet besides its text."""
CLIENT_ERRORS = range(2_000, 3_000)
"""Numbers of the driver's own errors, not the server's."""
BEGINNINGS = ("START TRANSACTION", "SET TRANSACTION")
"""The statements that come before the work of a transaction."""

LONG_BYTES = 65_536
"""A text of this many bytes is written in the shorter encoding."""

COLLATION = "/*!80000 utf8mb4_0900_bin */ /*M! utf8mb4_nopad_bin */"
"""The collation of all tables; each of the two servers reads the comment that is for it."""

_plain = re.compile(r"[ !-&(-\[\]-~]*")
"""ASCII without quotes and backslashes: it means the same in quotes in every sql_mode and character set."""
_parsed = lru_cache(maxsize=1_024)(parse)


class StatementResult(NamedTuple):
    """The result of a statement."""

    rows: list[Values]
    columns: Columns
    changed: int
    """How many rows were changed, or matched by an UPDATE."""
    key: int
    """The integer key of a new row."""


def _number(text: str) -> int | float:
    """Convert a sum: sums of whole numbers are whole numbers."""
    return float(text) if "." in text else int(text)


DECODERS = {**conversions, FIELD_TYPE.DECIMAL: _number, FIELD_TYPE.NEWDECIMAL: _number}


def render(sql: str, values: Mapping[str, Any]) -> str:
    """Return a statement with its values as literals, because the driver cannot bind them."""
    statement: Statement = _parsed(sql)
    if not statement.names:
        return statement.pieces[0]
    bound = _bound(statement.names, values)
    parts = [statement.pieces[0]]
    for name, before, after in zip(statement.names, statement.pieces[:-1], statement.pieces[1:], strict=True):
        value = bound[name]
        # The server converts a text to 0 when it is compared with a number; a quoted number has the type of its column.
        is_quoted = type(value) is int and before.rstrip().endswith(("=", "<", ">"))
        parts += (f"'{value}'" if is_quoted else literal(value), after)
    return "".join(parts)


def literals(names: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """The values of a row as literals for an INSERT; a missing column has its default."""
    bound = _bound([name for name in names if name in values], values)
    return [literal(bound[name]) if name in bound else "DEFAULT" for name in names]


def literal(value: Any) -> str:
    """A bound value as a literal."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{value}'" if _plain.fullmatch(value) else _encode(value.encode())
    if isinstance(value, Blob):
        return f"x'{value.hex()}'"
    if isinstance(value, float):
        if not math.isfinite(value):
            # In a statement it would be parsed as a name.
            raise InvalidValue(f"{value} cannot be stored or compared")
        # Without an exponent the server would parse it as a decimal number.
        text = repr(value)
        return text if "e" in text else f"{text}e0"
    return str(int(value))


def _encode(text: bytes) -> str:
    """Encode text in characters that cannot end a literal, whatever a server or a pooler takes for a quote.

    Hexadecimal digits are quick to read but double a text, which must fit into one packet; base64 adds a third.
    """
    if len(text) < LONG_BYTES:
        return f"_utf8mb4 x'{text.hex()}' COLLATE {COLLATION}"
    return f"CONVERT(FROM_BASE64('{b64encode(text).decode()}') USING utf8mb4) COLLATE {COLLATION}"


def _bound(names: Sequence[str], values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**values, **bind({name: values[name] for name in names if type(values[name]) is not Blob})}


class DriverConnection:
    """One connection to the server, prepared for our statements."""

    def __init__(self, driver: pymysql.Connection, setup_statements: Sequence[str]) -> None:
        self._driver = driver
        self.is_sound = True
        """Whether every statement that was sent has its result."""
        self.used_at = 0.0
        """When it was last released."""
        self.most_bytes = 0
        """The most bytes of a statement."""
        self.is_in_cluster = False
        """Whether the server is a node of a Galera cluster, where another node can roll back an open transaction."""
        self._may_join = bool(driver.client_flag & CLIENT.MULTI_STATEMENTS)
        driver.decoders = {kind: each for kind, each in DECODERS.items() if isinstance(kind, int)}
        for statement in setup_statements:
            self.run(statement)
        if not driver.server_status & SERVER_STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES:
            raise ServerError("1231", "the server does not accept the required sql_mode")
        self._read_variables()

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._driver.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def run(self, statement: str) -> StatementResult:
        """Execute one statement."""
        return self.execute_all([statement])[0]

    def execute_all(self, statements: Sequence[str]) -> list[StatementResult]:
        """Execute statements one after the other and return the results; if one fails, the rest is not executed."""
        results: list[StatementResult] = []
        for some in self._round_trips(statements):
            results += self._round_trip(some)
        return results

    def is_alive(self) -> bool:
        """Whether the server still knows this connection."""
        try:
            self._driver.ping(reconnect=False)
        except (pymysql.Error, OSError):
            return False
        return True

    def close(self) -> None:
        """Close the connection without a message to the server: it may be in any state."""
        self.is_sound = False
        self._driver._force_close()

    def _read_variables(self) -> None:
        """Read the server variables that limit statements."""
        variables: dict[str, str] = dict(
            self.run("SHOW VARIABLES WHERE Variable_name IN ('max_allowed_packet', 'wsrep_on')").rows
        )
        self.most_bytes = int(variables["max_allowed_packet"]) - PACKET_HEADER
        self.is_in_cluster = variables.get("wsrep_on") == "ON"
        if self.is_in_cluster:
            # A read through this node sees everything that was stored through another node.
            self.run("SET SESSION wsrep_sync_wait = 1")

    def _round_trips(self, statements: Sequence[str]) -> list[list[str]]:
        """Group the statements that are sent together."""
        if not self._may_join or len(statements) == 1:
            return [[each] for each in statements]
        if self.is_in_cluster:
            return _separately(statements)
        trips: list[list[str]] = [[]]
        size = 0
        for each in statements:
            size += len(each)
            if size > MOST_TOGETHER and trips[-1]:
                trips.append([])
                size = len(each)
            trips[-1].append(each)
        return trips

    def _round_trip(self, statements: Sequence[str]) -> list[StatementResult]:
        text = "; ".join(statements).encode()
        if 0 < self.most_bytes < len(text):
            raise ServerError(
                errors.PACKET, f"it is longer than max_allowed_packet of the server ({self.most_bytes} bytes)"
            )
        self.is_sound = False
        try:
            cursor = self._driver.cursor(Cursor)
            cursor.execute(text)
            results = [_result(cursor)]
            while cursor.nextset():
                results.append(_result(cursor))
        except pymysql.Error as exc:
            fault = _fault(exc)
            self.is_sound = isinstance(fault, ServerError)
            raise fault from None
        except (OSError, struct.error, IndexError) as exc:
            # The driver does not translate every error of a connection that breaks in the middle of a result.
            raise ConnectionLost(str(exc)) from None
        self.is_sound = True
        return results


def _separately(statements: Sequence[str]) -> list[list[str]]:
    """Send each statement alone, except the beginning of a transaction, which goes with its first statement.

    If another node rolls back a transaction between two statements that were sent together, the second is still
    executed, outside of any transaction; sent alone, it is refused.
    """
    trips: list[list[str]] = [[]]
    for each in statements:
        trips[-1].append(each)
        if not each.startswith(BEGINNINGS):
            trips.append([])
    return [each for each in trips if each]


def _result(cursor: Cursor) -> StatementResult:
    described = cursor.description
    columns = [each[0] for each in described] if described else []
    return StatementResult(
        list(cursor.fetchall()) if described else [], columns, cursor.rowcount, cursor.lastrowid or 0
    )


def _fault(exc: pymysql.Error) -> Fault:
    number = exc.args[0] if exc.args and isinstance(exc.args[0], int) else 0
    message = str(exc.args[1]) if len(exc.args) > 1 else str(exc)
    if number == 0 or number in CLIENT_ERRORS or str(number) in errors.GONE:
        return ConnectionLost(message)
    return ServerError(str(number), message)
