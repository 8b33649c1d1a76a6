"""Points in time as chats show them."""

from __future__ import annotations

from datetime import datetime, tzinfo

from hermes.phrases import plural

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def ago(moment: float | None, now: float) -> str:
    """Return how long before `now` a moment was."""
    if not moment:
        return "at an unknown time"
    age = now - moment
    for unit, seconds in (("day", _DAY), ("hour", _HOUR), ("minute", _MINUTE)):
        if age >= seconds:
            return f"{plural(int(age // seconds), unit)} ago"
    return "just now"


def clock_time(moment: float, zone: tzinfo | None) -> str:
    """Return a moment as date and time, in a zone or in that of the machine."""
    return datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%d %H:%M")


def span(seconds: float) -> str:
    """Return a time span: `3 h 12 min`, `5 min`, `40 s`."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    hours, minutes = divmod(whole // _MINUTE, 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
