"""Days as a person counts them: from one local midnight to the next, be that 23, 24 or 25 hours."""

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
    """Some whole local days, and how local time runs in them."""

    first: date
    last: date
    since: float
    """The first moment."""
    until: float
    """The first moment after."""
    shifts: tuple[tuple[float, int], ...]
    """From which moment on local time was so many seconds ahead of UTC, the newest first."""

    @property
    def days(self) -> int:
        """How many days they are."""
        return (self.last - self.first).days + 1

    def local_sql(self, column: str) -> str:
        """SQL for the moment in a column as local clocks show it, in seconds since their own 1970."""
        *changed, _ = self.shifts
        branches = [f"WHEN {column} >= :shift{n} THEN {column} + :offset{n}" for n in range(len(changed))]
        otherwise = f"{column} + :offset{len(changed)}"
        return f"(CASE {' '.join(branches)} ELSE {otherwise} END)" if branches else f"({otherwise})"

    def values(self) -> dict[str, Any]:
        """What is to be bound in SQL about this period."""
        bound: dict[str, Any] = {"since": self.since, "until": self.until}
        for number, (moment, offset) in enumerate(self.shifts):
            bound |= {f"shift{number}": moment, f"offset{number}": float(offset)}
        return bound


def last_days(days: int, now: float) -> Period:
    """Today and the days before it, so many together."""
    if not 1 <= days <= MOST_DAYS:
        raise InvalidValue(f"days must be a number from 1 to {MOST_DAYS}, not {days}")
    today = datetime.fromtimestamp(now, UTC).astimezone().date()
    first = today - timedelta(days=days - 1)
    since, until = _beginning(first), _beginning(today + timedelta(days=1))
    return Period(first, today, since, until, _shifts(since, until))


def date_of(day: int) -> date:
    """The date of a day that is numbered from 1970 on."""
    return _EPOCH + timedelta(days=day)


def _beginning(day: date) -> float:
    """The first moment of a day; where clocks are set forward at midnight, that is not midnight."""
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
    """The first second with another offset than `before` has."""
    old = _offset(before)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if _offset(middle) == old else (before, middle)
    return after


def _offset(moment: float) -> int:
    return time.localtime(moment).tm_gmtoff
