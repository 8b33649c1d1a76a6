"""Check the filters that callers pass: names and times."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, nan
from typing import Any

from hermes.errors import InvalidValue
from hermes.state.rows import parse_timestamp


def parse_names(given: Any, name: str) -> tuple[str, ...] | None:
    """Return a filter's values: None, one string, or several."""
    if given is None:
        return None
    values = (given,) if isinstance(given, str) else given
    if not isinstance(values, Iterable) or isinstance(values, bytes | dict):
        raise InvalidValue(f"{name} must be a list of strings, not {type(given).__name__}")
    listed = list(values)
    for value in listed:
        if not isinstance(value, str):
            raise InvalidValue(f"{name} must be a list of strings; {value!r} is not one")
    return tuple(dict.fromkeys(listed))


def parse_moment(given: Any, name: str) -> float | None:
    """Return a time as seconds since 1970: from None, a number, or a datetime."""
    if given is None:
        return None
    at = parse_timestamp(given, nan)
    if isnan(at):
        raise InvalidValue(f"{name} must be seconds since 1970 or a datetime, not {given!r}")
    return at
