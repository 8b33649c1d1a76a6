"""Local days: from one local midnight to the next, which may be 23, 24 or 25 hours."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from hermes.errors import InvalidValue

DAY_S = 86_400
HOUR_S = 3_600
MOST_DAYS = 36_500

_QUARTER_S = 900
_EPOCH = date(1970, 1, 1)


class Period(NamedTuple):
    """A number of whole local days, and their UTC offsets."""

    first: date
    last: date
    since: float
    """The start."""
    until: float
    """The end; not part of the period."""
    shifts: tuple[tuple[float, int], ...]
    """Each start time of a UTC offset, with the offset in seconds, newest first."""

    @property
    def days(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1

    def local_sql(self, column: str) -> str:
        """Return SQL that converts a column to local clock time, in seconds since the local 1970."""
        *changed, _ = self.shifts
        branches = [f"WHEN {column} >= :shift{n} THEN {column} + :offset{n}" for n in range(len(changed))]
        otherwise = f"{column} + :offset{len(changed)}"
        return f"(CASE {' '.join(branches)} ELSE {otherwise} END)" if branches else f"({otherwise})"

    def values(self) -> dict[str, Any]:
        """Return the values for SQL about this period."""
        bound: dict[str, Any] = {"since": self.since, "until": self.until}
        for number, (moment, offset) in enumerate(self.shifts):
            bound |= {f"shift{number}": moment, f"offset{number}": float(offset)}
        return bound


def last_days(days: int, now: float) -> Period:
    """Return the period of today and the days before it, `days` in total."""
    if not 1 <= days <= MOST_DAYS:
        raise InvalidValue(f"days must be a number from 1 to {MOST_DAYS}, not {days}")
    today = datetime.fromtimestamp(now, UTC).astimezone().date()
    first = today - timedelta(days=days - 1)
    since, until = _day_start(first), _day_start(today + timedelta(days=1))
    return Period(first, today, since, until, _shifts(since, until))


def date_of(day: int) -> date:
    """Return the date of a day that is numbered from 1970."""
    return _EPOCH + timedelta(days=day)


def _day_start(day: date) -> float:
    """Return the start of a day; if clocks change at midnight, it is not midnight."""
    moment = int(time.mktime((day.year, day.month, day.day, 12, 0, 0, 0, 0, -1)))
    moment -= moment % _QUARTER_S
    while time.localtime(moment - _QUARTER_S).tm_mday == day.day:
        moment -= _QUARTER_S
    return float(moment)


def _shifts(since: float, until: float) -> tuple[tuple[float, int], ...]:
    days = [*range(int(since), int(until), DAY_S), int(until)]
    found = [(since, _offset(days[0]))]
    for before, after in pairwise(days):
        if _offset(before) != _offset(after):
            found.append((float(_change(before, after)), _offset(after)))
    return tuple(reversed(found))


def _change(before: int, after: int) -> int:
    """Return the first second whose offset differs from that of `before`."""
    old = _offset(before)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if _offset(middle) == old else (before, middle)
    return after


def _offset(moment: float) -> int:
    return time.localtime(moment).tm_gmtoff
