"""Statements on their way to the server and back, several in one round trip where that is possible."""

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
from hermes.state.binding import bind
from hermes.state.engine import Columns, Values
from hermes.state.mysql import errors
from hermes.state.mysql.search.document import Blob
from hermes.state.server.faults import ConnectionLost, Fault, ServerError
from hermes.state.server.sql_parameters import Statement, parse

FLAGS = CLIENT.FOUND_ROWS | CLIENT.MULTI_STATEMENTS
"""An UPDATE answers how many rows it met, also where they were so already; several statements may go out together."""
MOST_TOGETHER = 262_144
"""Longer statements go out one by one."""
PACKET_HEADER = 1_024
"""What a statement needs in a packet beside its text."""
CLIENT_ERRORS = range(2_000, 3_000)
"""Numbers of errors that the driver found, not the server."""
BEGINNINGS = ("START TRANSACTION", "SET TRANSACTION")
"""How statements begin that come before the work of a transaction."""

LONG_BYTES = 65_536
"""A text of so many bytes is written in the form that takes less room."""

COLLATION = "/*!80000 utf8mb4_0900_bin */ /*M! utf8mb4_nopad_bin */"
"""The order of characters of all tables; each of the two servers reads the comment that is meant for it."""

_plain = re.compile(r"[ !-&(-\[\]-~]*")
"""ASCII that means the same between quotes under every sql_mode and every character set: no quote, no backslash."""
_parsed = lru_cache(maxsize=1_024)(parse)


class StatementResult(NamedTuple):
    """What the server said to a statement."""

    rows: list[Values]
    columns: Columns
    changed: int
    """How many rows were changed, or met by what would have changed them."""
    key: int
    """The integer key that was given to a new row."""


def _number(text: str) -> int | float:
    """Sums of whole numbers are whole numbers."""
    return float(text) if "." in text else int(text)


DECODERS = {**conversions, FIELD_TYPE.DECIMAL: _number, FIELD_TYPE.NEWDECIMAL: _number}


def render(sql: str, values: Mapping[str, Any]) -> str:
    """A statement with its values in their places, which the driver cannot bind."""
    statement: Statement = _parsed(sql)
    if not statement.names:
        return statement.pieces[0]
    bound = _bound(statement.names, values)
    parts = [statement.pieces[0]]
    for name, before, after in zip(statement.names, statement.pieces[:-1], statement.pieces[1:], strict=True):
        value = bound[name]
        # The server takes text for 0 where it is compared with a number; a number in quotes is what its column is.
        is_quoted = type(value) is int and before.rstrip().endswith(("=", "<", ">"))
        parts += (f"'{value}'" if is_quoted else literal(value), after)
    return "".join(parts)


def literals(names: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """The values of a row to be inserted, as they stand in a statement; a column that it lacks has its default."""
    bound = _bound([name for name in names if name in values], values)
    return [literal(bound[name]) if name in bound else "DEFAULT" for name in names]


def literal(value: Any) -> str:
    """A bound value as it stands in a statement."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{value}'" if _plain.fullmatch(value) else _encoded(value.encode())
    if isinstance(value, Blob):
        return f"x'{value.hex()}'"
    if isinstance(value, float):
        if not math.isfinite(value):
            # It would stand in the statement as a name.
            raise InvalidValue(f"{value} is no number that can be stored or compared")
        # Without an exponent the server would take it for a decimal number.
        said = repr(value)
        return said if "e" in said else f"{said}e0"
    return str(int(value))


def _encoded(text: bytes) -> str:
    """Text in characters that cannot end a literal, whatever a server, or one behind a pooler, takes a quote for.

    Hexadecimal digits are quick to read but double a text, which must fit into one packet; base64 adds a third.
    """
    if len(text) < LONG_BYTES:
        return f"_utf8mb4 x'{text.hex()}' COLLATE {COLLATION}"
    return f"CONVERT(FROM_BASE64('{b64encode(text).decode()}') USING utf8mb4) COLLATE {COLLATION}"


def _bound(names: Sequence[str], values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**values, **bind({name: values[name] for name in names if type(values[name]) is not Blob})}


class DriverConnection:
    """One connection to the server, prepared for statements of ours."""

    def __init__(self, driver: pymysql.Connection, setup_statements: Sequence[str]) -> None:
        self._driver = driver
        self.is_sound = True
        """Whether every statement that was sent has been answered."""
        self.used_at = 0.0
        """When it was last given back."""
        self.most_bytes = 0
        """How long a statement may be."""
        self.is_in_cluster = False
        """Whether the server is a node of a Galera cluster, where another node can undo an open transaction."""
        self._may_join = bool(driver.client_flag & CLIENT.MULTI_STATEMENTS)
        driver.decoders = {kind: each for kind, each in DECODERS.items() if isinstance(kind, int)}
        for statement in setup_statements:
            self.run(statement)
        if not driver.server_status & SERVER_STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES:
            raise ServerError("1231", "the server does not take sql_mode as it is set")
        self._read_variables()

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._driver.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def run(self, statement: str) -> StatementResult:
        """Execute one statement."""
        return self.execute_all([statement])[0]

    def execute_all(self, statements: Sequence[str]) -> list[StatementResult]:
        """Execute statements one after the other and answer each; if one fails, those after it are not executed."""
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
        """Let go of the connection without a word: it may be in any state."""
        self.is_sound = False
        self._driver._force_close()

    def _read_variables(self) -> None:
        """Ask the server what is to be known before statements are sent to it."""
        variables: dict[str, str] = dict(
            self.run("SHOW VARIABLES WHERE Variable_name IN ('max_allowed_packet', 'wsrep_on')").rows
        )
        self.most_bytes = int(variables["max_allowed_packet"]) - PACKET_HEADER
        self.is_in_cluster = variables.get("wsrep_on") == "ON"
        if self.is_in_cluster:
            # What was stored through another node is there when it is read through this one.
            self.run("SET SESSION wsrep_sync_wait = 1")

    def _round_trips(self, statements: Sequence[str]) -> list[list[str]]:
        """The statements as they go out together."""
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
        said = "; ".join(statements).encode()
        if 0 < self.most_bytes < len(said):
            raise ServerError(
                errors.PACKET, f"it is longer than max_allowed_packet of the server ({self.most_bytes} bytes)"
            )
        self.is_sound = False
        try:
            cursor = self._driver.cursor(Cursor)
            cursor.execute(said)
            results = [_result(cursor)]
            while cursor.nextset():
                results.append(_result(cursor))
        except pymysql.Error as exc:
            fault = _fault(exc)
            self.is_sound = isinstance(fault, ServerError)
            raise fault from None
        except (OSError, struct.error, IndexError) as exc:
            # The driver does not translate everything that a line can do that breaks in the middle of an answer.
            raise ConnectionLost(str(exc)) from None
        self.is_sound = True
        return results


def _separately(statements: Sequence[str]) -> list[list[str]]:
    """Each statement alone, but for the beginning of a transaction, which goes with the first of its statements.

    If another node undoes a transaction between two statements that were sent together, the second is executed all the
    same, outside of any transaction; sent alone, it is refused.
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
