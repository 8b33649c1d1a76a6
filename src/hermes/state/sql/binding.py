"""Convert values for a database; every engine binds its values here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.errors import InvalidValue
from hermes.state.rows import MARK, MAX_INTEGER, Stored, encode_text


def bind_text(value: str) -> str:
    """Return a text that a database can store; the same object if nothing needs to change."""
    return value if value.isascii() and "\0" not in value and value[:1] != MARK[0] else encode_text(value)


def bind(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return values that a database can store; the same mapping if nothing needs to change."""
    changed: dict[str, Any] = {}
    for name, value in values.items():
        kind = type(value)
        if kind is str:
            if (stored := bind_text(value)) is not value:
                changed[name] = stored
        elif value is None or kind is float or kind is Stored:
            continue
        elif kind is int:
            if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
                raise InvalidValue(f"{name} is too large to store: {value}")
        elif isinstance(value, str):
            changed[name] = encode_text(str.__str__(value))
        elif not isinstance(value, int | float):
            raise InvalidValue(f"{name} cannot be of type {kind.__name__}")
    return {**values, **changed} if changed else values
