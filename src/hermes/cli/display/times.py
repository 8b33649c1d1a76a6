"""Moments as a person says them."""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock

from hermes.errors import InvalidValue

MOMENT_FORMS = "2026-01-31, 2026-01-31T10:00, today, yesterday, or so long ago: 30m, 12h, 7d, 2w"

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR

_UNITS = {"m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
_AGE = re.compile(r"([0-9]{1,6})([mhdw])")


def ago(moment: object, now: float) -> str:
    """How long before `now` a moment was; a date after a week, a question mark when it is not known."""
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
    """The moment that `text` names in one of `MOMENT_FORMS`, or None if it names none.

    A day stands for its first moment, as an end for its last. What names no zone is local time.
    """
    said = text.strip().lower()
    if age := _AGE.fullmatch(said):
        return now - int(age[1]) * _UNITS[age[2]]
    try:
        day = _parse_day(said, datetime.fromtimestamp(now, UTC).astimezone().date())
        if day is None:
            named = datetime.fromisoformat(said.upper())
        else:
            named = datetime.combine(day, clock.max if is_end else clock.min)
        if named.tzinfo:
            return named.timestamp()
        # timestamp() fails on the last day of the calendar, which some name to say: no end.
        return time.mktime(named.timetuple()) + named.microsecond / 1_000_000
    except (ValueError, OverflowError, OSError):
        return None


def parse_moment_option(option: str, text: str | None, now: float, *, is_end: bool = False) -> float | None:
    """The moment that was said behind an option, or None if nothing was; what names none is refused."""
    if text is None:
        return None
    moment = parse_moment(text, now, is_end=is_end)
    if moment is None:
        raise InvalidValue(f"{option} does not understand {text!r}", hint=f"say {MOMENT_FORMS}")
    return moment


def _parse_day(said: str, today: date) -> date | None:
    if said == "today":
        return today
    if said == "yesterday":
        return today - timedelta(days=1)
    try:
        return date.fromisoformat(said)
    except ValueError:
        return None
