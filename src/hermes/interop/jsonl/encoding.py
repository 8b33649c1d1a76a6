"""Encoding of sessions as lines of JSON: one object per session, complete enough to import it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from operator import itemgetter
from typing import Any

import msgspec

from hermes.state import json_text
from hermes.state.import_export.session_reader import SessionExport
from hermes.state.messages.drafts import JSON_FIELDS
from hermes.state.rows import Row

_encode_quickly = msgspec.json.Encoder().encode
_encode_patiently = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_structured = itemgetter("content", *JSON_FIELDS)


def line_of(session: SessionExport) -> Iterator[bytes]:
    """Yield a session as one line, in pieces; the messages come last, so a reader knows their session first."""
    yield encode(session.head)[:-1] + b',"messages":['
    is_first = True
    for page in session.pages:
        if page:
            yield (b"" if is_first else b",") + _encode_page(page)
            is_first = False
    yield b"]}\n"


def encode(value: Any) -> bytes:
    """Return a value as JSON in UTF-8, compact and unescaped."""
    try:
        return _encode_quickly(value)
    except UnicodeEncodeError:
        return _encode_exactly(value)


def decode(data: bytes) -> Any:
    """Decode a line of JSON; raise ValueError or RecursionError if it is invalid."""
    try:
        return json_text.unmark_surrogates(msgspec.json.decode(data), data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Strict decoders reject lone surrogates and NaN, but Python's own encoder writes them.
        return json_text.loads(data)


def _encode_page(page: list[Row]) -> bytes:
    """Return messages as JSON, separated by commas."""
    if not any(map(_is_odd, page)):
        try:
            return _encode_quickly(page)[1:-1]
        except UnicodeEncodeError:
            pass  # encode them one by one
    return b",".join(_encode_exactly(each) if _is_odd(each) else encode(each) for each in page)


def _is_odd(message: Row) -> bool:
    """Whether a message contains NaN or an infinity, which JSON cannot express."""
    for value in _structured(message):
        if value is not None and type(value) is not str and _has_odd_number(value):
            return True
    return False


def _encode_exactly(value: Any) -> bytes:
    """Return a value as JSON from which lone surrogates and NaN are decoded unchanged."""
    return _encode_patiently(json_text.mark_surrogates(value)).encode("utf-8", "backslashreplace")


def _has_odd_number(value: Any) -> bool:
    """Whether a value contains NaN or an infinity, which JSON cannot express."""
    # Without recursion: some versions of Python allow only few levels of it.
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, float) and not isfinite(each):
            return True
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return False
