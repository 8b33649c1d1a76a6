"""The width of the next span of ids for which the index is queried."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.state.postgres.search.document import SHIFTS

FIRST_SPAN, SURE_SPAN, WIDE_SPAN = 1_024, 8_192, 131_072
"""How many ids are queried first, after how many the share of matches is known, and how many are queried together at
most."""
ENOUGH_TO_GUESS = 8
"""With so many matches, their number in a much wider span can be estimated."""


@dataclass
class SpanWidth:
    """The width of the next span: wide enough for as many matches as are wanted, judging by the last ones."""

    wanted: int
    span: int = FIRST_SPAN
    is_everything_next: bool = False
    """Whether matches are so rare that all other messages are queried together."""
    _seen: int = 0
    _found: int = 0

    def first_below(self, high: int) -> int:
        """The first id of the span that ends with `high`: where a wide mark begins, if the span is wide."""
        shift = max(shift for shift in SHIFTS[:2] if shift == SHIFTS[0] or 1 << shift <= 2 * self.span)
        return high - self.span >> shift << shift

    def adjust(self, seen: int, found: int) -> None:
        """Add how many ids were queried, and how many of them matched."""
        self._seen += seen
        self._found += found
        needed = self.wanted * self._seen // max(1, self._found)
        self.is_everything_next = not self.is_everything_next and self._seen > SURE_SPAN and needed > WIDE_SPAN
        # A few matches say little about how many there are further down.
        most = (8 if self._found < ENOUGH_TO_GUESS else 64) * self._seen
        self.span = min(WIDE_SPAN, max(FIRST_SPAN, min(needed, most)))
