"""Messages as other programs write them down, put into the form in which they are stored here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hermes.errors import InvalidValue
from hermes.state.messages.drafts import draft_message
from hermes.state.rows import Row


def text_of(value: Any) -> str:
    """A value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def count_of(value: Any) -> int:
    """A value if it is a number of things, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def dict_of(value: Any) -> Mapping[str, Any]:
    """A value if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: Any) -> list[dict[str, Any]]:
    """The dicts in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def moment_of(value: Any) -> float | None:
    """A moment that is written as ISO 8601 says, or as seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def call_of(call_id: Any, name: Any, arguments: Any) -> Row:
    """A tool call; its arguments are JSON text."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": text_of(call_id),
        "type": "function",
        "function": {"name": text_of(name) or "unknown", "arguments": given},
    }


def joined(texts: list[str]) -> str | None:
    """What of several texts is not empty, as paragraphs."""
    return "\n\n".join(text for text in texts if text) or None


def told_of(part: Mapping[str, Any]) -> str:
    """A word for something that is no text: pictures and files are not stored, only that there were some."""
    source = dict_of(part.get("source"))
    kind = text_of(source.get("media_type")) or text_of(part.get("type")) or "something"
    return f"[{kind}]"


def is_storable(message: Row, now: float) -> bool:
    """Whether a message can be stored; what somebody made up to look like one may not."""
    try:
        draft_message(message, now)
    except InvalidValue:
        return False
    return True
