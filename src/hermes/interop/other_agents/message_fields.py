"""Conversion of other programs' message fields to the stored form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hermes.errors import InvalidValue
from hermes.state.messages.drafts import draft_message
from hermes.state.rows import Row


def text_of(value: Any) -> str:
    """The value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int:
    """The value if it is a valid count, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def dict_of(value: Any) -> Mapping[str, Any]:
    """The value if it is a dict, else an empty dict."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: Any) -> list[dict[str, Any]]:
    """The dicts in a list; an empty list for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def moment_of(value: Any) -> float | None:
    """Parse a time given in ISO 8601 or as seconds; return None if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def call_of(call_id: Any, name: Any, arguments: Any) -> Row:
    """Return a tool call; its arguments become JSON text."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": text_of(call_id),
        "type": "function",
        "function": {"name": text_of(name) or "unknown", "arguments": given},
    }


def join_paragraphs(texts: list[str]) -> str | None:
    """Join the non-empty texts as paragraphs; return None if there are none."""
    return "\n\n".join(text for text in texts if text) or None


def placeholder_for(part: Mapping[str, Any]) -> str:
    """A placeholder such as "[image/png]" for a part that is not text: pictures and files are not stored."""
    source = dict_of(part.get("source"))
    kind = text_of(source.get("media_type")) or text_of(part.get("type")) or "something"
    return f"[{kind}]"


def is_storable(message: Row, now: float) -> bool:
    """Whether a message can be stored; a forged or damaged one may be invalid."""
    try:
        draft_message(message, now)
    except InvalidValue:
        return False
    return True
