"""Checks of numbers: time limits and counts from callers, whole numbers from a file."""

from __future__ import annotations

from math import isfinite

from hermes.errors import InvalidValue

_LARGEST = (1 << 63) - 1


def checked_timeout(name: str, value: object) -> float:
    """Return a number of seconds; raise `InvalidValue` if it is negative or not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise InvalidValue(f"{name} must be a number of seconds, 0 or more: {value!r}")
    return float(value)


def checked_count(name: str, value: object) -> int:
    """Return a whole number of at least one, or raise `InvalidValue`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidValue(f"{name} must be a whole number of 1 or more: {value!r}")
    return value


def whole_number(value: object) -> int | None:
    """Return a whole number from a file, also one stored as text; None if SQLite cannot store it."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= len(str(_LARGEST)):
        value = int(value)
    return value if isinstance(value, int) and 0 <= value <= _LARGEST else None
