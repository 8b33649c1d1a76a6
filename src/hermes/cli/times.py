"""Moments as a person says them."""

from __future__ import annotations

import time

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


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
