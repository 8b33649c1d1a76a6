"""INSERTs of many rows: few statements, none of them long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from hermes.state.mysql.connection.statements import MOST_TOGETHER
from hermes.state.server.sql_parameters import parse

MANY_ROWS = 500
"""How many rows one statement inserts."""

_VALUES = "VALUES ("


class InsertTemplate(NamedTuple):
    """An INSERT of one row that can be extended to many rows."""

    start: str
    """The text before VALUES."""
    names: tuple[str, ...]
    """The parameters of the row."""
    end: str
    """The text after the row."""


@lru_cache(maxsize=256)
def parse_insert(sql: str) -> InsertTemplate | None:
    """Split a statement if it inserts one row of nothing but parameters; otherwise return None."""
    pieces, names = parse(sql)
    first, last = pieces[0], pieces[-1]
    if not first.endswith(_VALUES) or not last.startswith(")") or any(each != ", " for each in pieces[1:-1]):
        return None
    return InsertTemplate(first.removesuffix(_VALUES), names, last.removeprefix(")"))


def statements(start: str, rows: Iterable[Sequence[str]], end: str = "") -> Iterator[tuple[str, int]]:
    """Yield statements that insert rows of literals, in their order, each with the number of its rows."""
    some: list[str] = []
    size = 0
    for row in rows:
        text = f"({', '.join(row)})"
        if some and (len(some) == MANY_ROWS or size + len(text) > MOST_TOGETHER):
            yield _join(start, some, end), len(some)
            some, size = [], 0
        some.append(text)
        size += len(text)
    if some:
        yield _join(start, some, end), len(some)


def _join(start: str, rows: Sequence[str], end: str) -> str:
    return f"{start} VALUES {', '.join(rows)} {end}"
