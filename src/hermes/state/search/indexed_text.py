"""The searchable text of a message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hermes.query import analyze
from hermes.state.rows import decode_content, decode_text

MAX_TEXT = 1_000_000
TOOL_HEAD = 32_768
TOOL_TAIL = 8_192

MAX_DEPTH = 64
"""The maximum depth at which a JSON value is searched for texts."""

_STRUCTURE = ("type", "index")
"""Keys of content parts and tool calls whose values describe structure and are no text."""

_data_url = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,]")


def search_text(role: str, content: Any, tool_name: Any, tool_calls: Any) -> str:
    """Return the content, the tool's name and the calls with their arguments, from the stored values of a message."""
    body = _join_strings(decode_content(content))
    if role == "tool" and len(body) > TOOL_HEAD + TOOL_TAIL:
        body = f"{body[:TOOL_HEAD]}\n{body[-TOOL_TAIL:]}"
    text = body[:MAX_TEXT]
    if tool_name:
        text = f"{text}\n{decode_text(tool_name)}"
    if tool_calls:
        text = f"{text}\n{_join_strings(_parse(tool_calls))[:MAX_TEXT]}"
    return analyze.replace_unindexable(text)


def _join_strings(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return "\n".join(_strings(value))


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield every text in content parts or tool calls."""
    if isinstance(value, str):
        # Users do not search for the bytes of a picture.
        if value and not _data_url.match(value):
            yield value
    elif depth == MAX_DEPTH:
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "arguments":
                # Models write the arguments of a call as JSON text.
                yield from _arguments(_parse(item), depth + 1)
            elif key not in _STRUCTURE:
                yield from _strings(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _arguments(value: Any, depth: int) -> Iterator[str]:
    """Yield the names and values of a call's arguments."""
    if isinstance(value, dict) and depth < MAX_DEPTH:
        for name, item in value.items():
            yield " ".join([str(name), *_arguments(item, depth + 1)])
    elif isinstance(value, list) and depth < MAX_DEPTH:
        for item in value:
            yield from _arguments(item, depth + 1)
    elif isinstance(value, bool):
        yield str(value).lower()
    else:
        yield from _strings(value, depth)


def _parse(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
