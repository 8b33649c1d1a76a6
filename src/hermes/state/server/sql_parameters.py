"""SQL of the operations, split into text and the names of its parameters."""

from __future__ import annotations

import re
from typing import NamedTuple

_token = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | :: | :([A-Za-z_]\w*)""",
    re.VERBOSE,
)
"""Everything that may contain a colon; only the last alternative is a parameter."""


class Statement(NamedTuple):
    """A statement, split where a driver inserts its own placeholders."""

    pieces: tuple[str, ...]
    """One more than there are names."""
    names: tuple[str, ...]
    """The parameters in the order of their positions; one that is used several times is listed several times."""


def parse(sql: str) -> Statement:
    """Split a statement with parameters such as `:name`."""
    pieces: list[str] = []
    names: list[str] = []
    start = 0
    for found in _token.finditer(sql):
        if found[1] is not None:
            pieces.append(sql[start : found.start()])
            names.append(found[1])
            start = found.end()
    return Statement((*pieces, sql[start:]), tuple(names))
