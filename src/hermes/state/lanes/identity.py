"""Short names for keys of any length, and hashes that recognize a message that is delivered again."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

from hermes.errors import InvalidValue
from hermes.state import json_text
from hermes.state.json_text import is_unicode
from hermes.state.rows import MARK, encode_json

MAX_NAME_CHARACTERS = 255
"""Longer names are stored in a short form, which has one character more and so is never a name."""
SHORT_START_CHARACTERS = 191
MAX_PAYLOAD_BYTES = 1 << 20
MAX_PAYLOAD_DEPTH = 100
"""Python parses deeper values only while its stack is short, so a claim might fail for what was accepted."""
MAX_REASON_CHARACTERS = 2_000


def short_form(name: str) -> str:
    """Return a name that fits into an index of every database: the name itself, or its beginning and its hash."""
    if len(name) <= MAX_NAME_CHARACTERS and is_storable(name):
        return name
    start = name[:SHORT_START_CHARACTERS].encode("utf-8", "replace").decode().replace("\0", "?").replace(MARK[0], "?")
    return f"{start:#<{SHORT_START_CHARACTERS}}#{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def is_storable(text: str) -> bool:
    """Whether every database can hold a text as it is."""
    return (text.isascii() or is_unicode(text)) and "\0" not in text and not text.startswith(MARK)


def require_name(value: Any, what: str) -> str:
    """Return `value` if it is a nonempty string; any length and any characters are allowed."""
    if not isinstance(value, str):
        raise InvalidValue(f"{what} must be a string, not {type(value).__name__}")
    if not value:
        raise InvalidValue(f"{what} must not be empty")
    return value


def stored_name(name: str) -> str | None:
    """Return the value of the column next to the short form: None if the short form is the name."""
    return None if short_form(name) == name else name


def digest(*parts: str) -> str:
    """Return a hash of several texts: 160 bits, in hexadecimal digits."""
    return sha256(ascii(parts).encode()).hexdigest()[:40]


def new_uid() -> str:
    """Return 96 random bits as text."""
    return urlsafe_b64encode(os.urandom(12)).decode()


def encode_payload(value: Any, what: str) -> str:
    """Return a dict as JSON; raise `InvalidValue` if it is no dict, too long or nested too deeply."""
    if not isinstance(value, dict):
        raise InvalidValue(f"{what} must be a dict, not {type(value).__name__}")
    text = encode_json(value)
    if len(text) > MAX_PAYLOAD_BYTES or (
        not text.isascii() and len(text.encode("utf-8", "replace")) > MAX_PAYLOAD_BYTES
    ):
        raise InvalidValue(
            f"{what} is longer than {MAX_PAYLOAD_BYTES:,} bytes", hint="store large parts as files and name them here"
        )
    if text.count("[") + text.count("{") > MAX_PAYLOAD_DEPTH and _is_deep(value):
        raise InvalidValue(f"{what} is nested more than {MAX_PAYLOAD_DEPTH} levels deep", hint="store it as text")
    return text


def optional_payload(value: Any, what: str) -> str | None:
    """Return a dict as JSON, or None."""
    return None if value is None else encode_payload(value, what)


def decode_payload(stored: Any) -> Any:
    """Return the dict that `encode_payload` encoded; None if it was removed."""
    return None if stored is None else json_text.loads(stored)


def _is_deep(value: Any) -> bool:
    """Whether a value has more levels than a payload may have."""
    level = [value]
    for _ in range(MAX_PAYLOAD_DEPTH):
        items = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for each in items for item in each if isinstance(item, dict | list | tuple)]
    return bool(level)


def require_reason(value: Any) -> str:
    """Return a reason, shortened to a sensible length."""
    if not isinstance(value, str):
        raise InvalidValue(f"reason must be a string, not {type(value).__name__}")
    return value[:MAX_REASON_CHARACTERS]
