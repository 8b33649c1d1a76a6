"""Points in time as people read and write them."""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock

from hermes.errors import InvalidValue

MOMENT_FORMS = "2026-01-31, 2026-01-31T10:00, today, yesterday, or an age such as 30m, 12h, 7d, 2w"

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR

_UNITS = {"m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
_AGE = r"([0-9]{1,6})([mhdw])"


def ago(moment: object, now: float) -> str:
    """Format how long before `now` a moment was: a date after a week, a question mark if it is unknown."""
    if not isinstance(moment, int | float) or not moment:
        return "?"
    age = now - moment
    if age < _MINUTE:
        return "just now"
    if age < _HOUR:
        return f"{int(age // _MINUTE)}m ago"
    if age < _DAY:
        return f"{int(age // _HOUR)}h ago"
    if age < 2 * _DAY:
        return "yesterday"
    if age < 7 * _DAY:
        return f"{int(age // _DAY)}d ago"
    try:
        return time.strftime("%Y-%m-%d", time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return "?"


def parse_moment(text: str, now: float, *, is_end: bool = False) -> float | None:
    """Parse a moment in one of `MOMENT_FORMS`; None if `text` is not one.

    A day means its first moment, or its last if `is_end`. Without a time zone, it is local time.
    """
    text = text.strip().lower()
    if age := re.fullmatch(_AGE, text):
        return now - int(age[1]) * _UNITS[age[2]]
    try:
        day = _parse_day(text, datetime.fromtimestamp(now, UTC).astimezone().date())
        if day is None:
            moment = datetime.fromisoformat(text.upper())
        else:
            moment = datetime.combine(day, clock.max if is_end else clock.min)
        if moment.tzinfo:
            return moment.timestamp()
        # timestamp() fails on the last day of the calendar, which some people use for "no end".
        return time.mktime(moment.timetuple()) + moment.microsecond / 1_000_000
    except (ValueError, OverflowError, OSError):
        return None


def parse_moment_option(option: str, text: str | None, now: float, *, is_end: bool = False) -> float | None:
    """Parse the value of an option; None if the option is missing. Raise `InvalidValue` if it is not a moment."""
    if text is None:
        return None
    moment = parse_moment(text, now, is_end=is_end)
    if moment is None:
        raise InvalidValue(f"{option}: invalid date or time {text!r}", hint=f"use {MOMENT_FORMS}")
    return moment


def _parse_day(text: str, today: date) -> date | None:
    if text == "today":
        return today
    if text == "yesterday":
        return today - timedelta(days=1)
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
