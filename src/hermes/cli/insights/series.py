"""Values over time, fitted to a number of columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from hermes.state.usage.activity import Activity, Day
from hermes.state.usage.period import Period

LEVELS = "▁▂▃▄▅▆▇█"
PLAIN_LEVELS = ".:-=+*%#"
"""For terminals that cannot show `LEVELS`."""
NOTHING = " "


class DaySpan(NamedTuple):
    """Consecutive days with their messages, tokens and costs."""

    first: date
    last: date
    messages: int
    tokens: int
    cost_usd: float

    @property
    def name(self) -> str:
        """The day, as in `2026-01-31`, or the first and the last day."""
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


def split_days(period: Period, activity: Activity, most: int) -> list[DaySpan]:
    """Split a period into at most `most` spans of equal length; the first may be shorter."""
    length = -(-period.days // most)
    count = -(-period.days // length)
    found: list[list[Day]] = [[] for _ in range(count)]
    for day in activity.days:
        found[count - 1 - (period.last - day.date).days // length].append(day)
    return [_make_span(period, length, count - 1 - place, days) for place, days in enumerate(found)]


def sparkline(values: Sequence[float], levels: str = LEVELS) -> str:
    """Draw a line of small bars; every value above zero is visible."""
    most = max(values, default=0)
    return "".join(_bar(value, most, levels) for value in values)


def bar_length(value: float, most: float, longest: int) -> int:
    """Return the length of a bar, at most `longest`, and at least 1 for a value above zero."""
    return max(1, round(longest * value / most)) if value > 0 and most > 0 else 0


def _bar(value: float, most: float, levels: str) -> str:
    return levels[bar_length(value, most, len(levels)) - 1] if value > 0 else NOTHING


def _make_span(period: Period, length: int, from_the_end: int, days: Sequence[Day]) -> DaySpan:
    last = period.last - timedelta(days=from_the_end * length)
    return DaySpan(
        first=max(period.first, last - timedelta(days=length - 1)),
        last=last,
        messages=sum(day.messages for day in days),
        tokens=sum(day.tokens for day in days),
        cost_usd=sum(day.cost_usd for day in days),
    )
