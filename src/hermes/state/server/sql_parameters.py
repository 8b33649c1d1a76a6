"""SQL as operations write it, taken apart into text and the names of its parameters."""

from __future__ import annotations

import re
from typing import NamedTuple

_token = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | :: | :([A-Za-z_]\w*)""",
    re.VERBOSE,
)
"""What a colon may stand in; only the last kind is a parameter."""


class Statement(NamedTuple):
    """A statement between whose pieces of text a driver puts its own kind of placeholder."""

    pieces: tuple[str, ...]
    """One more than there are names."""
    names: tuple[str, ...]
    """The parameters in the order of their places; one that stands in several places comes several times."""


def parse(sql: str) -> Statement:
    """Take a statement with parameters such as `:name` apart."""
    pieces: list[str] = []
    names: list[str] = []
    start = 0
    for found in _token.finditer(sql):
        if found[1] is not None:
            pieces.append(sql[start : found.start()])
            names.append(found[1])
            start = found.end()
    return Statement((*pieces, sql[start:]), tuple(names))
