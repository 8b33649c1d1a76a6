"""The text by which a message is found."""

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
"""How deep in a JSON value texts are looked for."""

_STRUCTURE = ("type", "index")
"""Keys of content parts and tool calls whose values say how to read the rest, not what was said."""

_data_url = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,]")


def search_text(role: str, content: Any, tool_name: Any, tool_calls: Any) -> str:
    """What was said, the tool's name and the calls with their arguments, from the stored values of a message."""
    said = _joined(decode_content(content))
    if role == "tool" and len(said) > TOOL_HEAD + TOOL_TAIL:
        said = f"{said[:TOOL_HEAD]}\n{said[-TOOL_TAIL:]}"
    text = said[:MAX_TEXT]
    if tool_name:
        text = f"{text}\n{decode_text(tool_name)}"
    if tool_calls:
        text = f"{text}\n{_joined(_parsed(tool_calls))[:MAX_TEXT]}"
    return analyze.replace_unindexable(text)


def _joined(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return "\n".join(_strings(value))


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text in content parts or tool calls."""
    if isinstance(value, str):
        # A picture in a message is not something that anybody would type.
        if value and not _data_url.match(value):
            yield value
    elif depth == MAX_DEPTH:
        return
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "arguments":
                # Models write the arguments of a call as JSON text.
                yield from _arguments(_parsed(item), depth + 1)
            elif key not in _STRUCTURE:
                yield from _strings(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _arguments(value: Any, depth: int) -> Iterator[str]:
    """The names and values of a call's arguments."""
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


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
