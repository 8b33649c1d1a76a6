"""Reading text that is not UTF-8, left by a flipped bit or another program: invalid bytes become U+FFFD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw

from hermes.state.engine import Columns, Values


def type_and_bytes(expression: str) -> str:
    """Return two SQL expressions for one: the type of a value, and the value with its text as bytes."""
    kind = f"typeof({expression})"
    return f"{kind}, CASE {kind} WHEN 'text' THEN CAST({expression} AS BLOB) ELSE {expression} END"


def decode_value(kind: str, value: Any) -> Any:
    """Return the value of such a pair."""
    return value.decode("utf-8", "replace") if kind == "text" else value


def read(connection: apsw.Connection, sql: str, values: Mapping[str, Any]) -> tuple[Columns, list[Values]]:
    """Return the column names of a query and all its rows."""
    from apsw.ext import query_info

    columns = [column[0] for column in query_info(connection, sql, values).description]
    names = [f"c{place}" for place in range(len(columns))]
    rows = connection.execute(
        f"WITH found({', '.join(names)}) AS ({sql}) SELECT {', '.join(map(type_and_bytes, names))} FROM found", values
    ).fetchall()
    return columns, [tuple(decode_value(str(row[i]), row[i + 1]) for i in range(0, len(row), 2)) for row in rows]
