"""JSON that preserves every Python string, also those that plain JSON would change.

JSON writes `\\ud83d\\ude00` both for one character beyond U+FFFF and for its two surrogates as separate characters,
and every parser returns the first. So `dumps` writes a SUBSTITUTE character between separate surrogates, and `loads`
removes it. If the text already has some there, `dumps` adds one more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_parse = json.JSONDecoder().decode

_MARK = "\\u001a"
"""The SUBSTITUTE character in JSON text, where it is always escaped."""

# Not compiled here: few texts have surrogates.
_PAIR = "([\ud800-\udbff])(?=\x1a*[\udc00-\udfff])"
_MARKED_PAIR = "([\ud800-\udbff])\x1a(?=\x1a*[\udc00-\udfff])"


def dumps(value: Any) -> str:
    """Return JSON text, readable (not escaped) where a database can hold it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or is_unicode(text) else dumps_ascii(value)


def dumps_ascii(value: Any) -> str:
    """Return JSON text in ASCII."""
    return json.dumps(mark_surrogates(value))


def loads(text: str | bytes) -> Any:
    """Return the value that `dumps` encoded."""
    return unmark_surrogates(_parse(text) if isinstance(text, str) else json.loads(text), text)


def loads_or_keep(text: Any) -> Any:
    """Return the value that `dumps` encoded, or the argument itself if it is not JSON text."""
    try:
        return loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


def parse_if_text(value: Any) -> Any:
    """Parse plain JSON text, which may be that of a model; return any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def mark_surrogates(value: Any) -> Any:
    """Insert a mark between surrogates that are separate characters."""
    return _in_strings(value, lambda text: re.sub(_PAIR, "\\1\x1a", text))


def unmark_surrogates(value: Any, text: str | bytes) -> Any:
    """Remove the marks from a parsed value, if the JSON text that it was parsed from has any."""
    marked = _MARK in text if isinstance(text, str) else _MARK.encode() in text
    return _in_strings(value, lambda string: re.sub(_MARKED_PAIR, "\\1", string)) if marked else value


def is_unicode(text: str) -> bool:
    """Whether a string has no surrogates and so can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _in_strings(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_in_strings(key, change): _in_strings(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_strings(item, change) for item in value]
    return value
