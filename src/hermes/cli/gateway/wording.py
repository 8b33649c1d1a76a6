"""Times and time spans as the gateway's commands show them."""

from __future__ import annotations

import time

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def span(seconds: float | None) -> str:
    """`11 ms`, `4.2 s`, `3 min 5 s`, `2 h 5 min`, `3 d 4 h`; a question mark if it is unknown."""
    if seconds is None:
        return "?"
    if seconds < 0.9995:
        return f"{round(seconds * 1000)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, size, smaller, part in (("d", _DAY, "h", _HOUR), ("h", _HOUR, "min", _MINUTE), ("min", _MINUTE, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def clock_time(moment: float) -> str:
    """Return a moment in local time, with milliseconds."""
    thousandths = int(moment * 1000)
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(thousandths // 1000))
    return f"{local}.{thousandths % 1000:03d}"
