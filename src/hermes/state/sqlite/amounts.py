"""Numbers that callers give: how long something may take, and how many there may be."""

from __future__ import annotations

from math import isfinite

from hermes.errors import InvalidValue


def checked_timeout(name: str, value: object) -> float:
    """Return a number of seconds, or raise `InvalidValue` if it is none that anything can wait for."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise InvalidValue(f"{name} must be a number of seconds, 0 or more: {value!r}")
    return float(value)


def checked_count(name: str, value: object) -> int:
    """Return a whole number of at least one, or raise `InvalidValue`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidValue(f"{name} must be a whole number of 1 or more: {value!r}")
    return value
