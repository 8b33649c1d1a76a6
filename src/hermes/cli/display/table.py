"""Tables that fit the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hermes.cli.display.terminal import clip, display_width, pad, printable

GAP = 2
LEAST_WIDTH = 8
"""The minimum width of a column, however narrow the terminal."""

RESERVED_FOR_LAST = 32
"""The last column is never cut. A wider cell runs over the edge instead of narrowing the other columns."""


class Column(NamedTuple):
    """A header and its cells. An elastic column shrinks if the terminal is too narrow."""

    header: str
    cells: Sequence[str]
    is_elastic: bool = False
    dropped: int = 0
    """When the column is left out, if not all fit even with the narrowest: first those with 1; never with 0."""

    def widest(self) -> int:
        """The width at which no cell is cut."""
        return max(display_width(each) for each in (self.header, *self.cells))

    def narrowest(self) -> int:
        """The least width in a table."""
        return min(LEAST_WIDTH, self.widest()) if self.is_elastic else self.widest()


def format_table(columns: Sequence[Column], width: int) -> list[str]:
    """Format a table of at most `width` columns: the header, a rule, the rows."""
    safe = _drop([each._replace(cells=[printable(cell) for cell in each.cells]) for each in columns], width)
    *padded, last = safe
    widths = _fit(padded, width - min(last.widest(), RESERVED_FOR_LAST) - GAP * len(padded))
    lines = [_format_line(cells, widths) for cells in zip(*([each.header, *each.cells] for each in safe), strict=True)]
    rule = "─" * max(display_width(line) for line in lines)
    return [lines[0], rule, *lines[1:]]


def _drop(columns: list[Column], width: int) -> list[Column]:
    """Return the columns that fit, without those that may be left out."""
    while True:
        *padded, last = columns
        least = sum(each.narrowest() + GAP for each in padded) + min(last.narrowest(), RESERVED_FOR_LAST)
        droppable = [each for each in columns if each.dropped]
        if least <= width or not droppable:
            return columns
        columns = [each for each in columns if each is not min(droppable, key=lambda each: each.dropped)]


def _fit(columns: Sequence[Column], available: int) -> list[int]:
    """Return column widths that fill at most `available`; the widest elastic column shrinks first."""
    widths = [each.widest() for each in columns]
    elastic = [index for index, each in enumerate(columns) if each.is_elastic]
    while elastic and sum(widths) > available:
        widest = max(elastic, key=lambda index: widths[index])
        if widths[widest] <= LEAST_WIDTH:
            break
        widths[widest] -= 1
    return widths


def _format_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    *padded, last = cells
    return (" " * GAP).join(
        [*(pad(clip(cell, width), width) for cell, width in zip(padded, widths, strict=True)), last]
    )
