"""The searchable text of a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from hermes.query import analyze
from hermes.query.analyze import machine_id_word
from hermes.state.json_text import parse_if_text
from hermes.state.rows import decode_content, decode_text

MAX_TEXT = 1_000_000
TOOL_HEAD = 32_768
TOOL_TAIL = 8_192

MAX_DEPTH = 64
"""The maximum depth at which a JSON value is searched for texts."""

_STRUCTURE = ("type", "index")
"""Keys of content parts and tool calls whose values describe structure and are no text."""

_IDS = ("id", "call_id", "tool_call_id")

_data_url = re.compile(r"data:[\w.+-]+/[\w.+-]+[;,]")


def search_text(
    role: str, content: Any, tool_name: Any, tool_calls: Any, *, write_id: Callable[[str], str] = machine_id_word
) -> str:
    """Return the content, the tool's name and the calls with their arguments, from the stored values of a message."""
    body = _join_strings(decode_content(content))
    if role == "tool" and len(body) > TOOL_HEAD + TOOL_TAIL:
        body = f"{body[:TOOL_HEAD]}\n{body[-TOOL_TAIL:]}"
    text = body[:MAX_TEXT]
    if tool_name:
        text = f"{text}\n{decode_text(tool_name)}"
    if tool_calls:
        text = f"{text}\n{_join_strings(parse_if_text(tool_calls), write_id)[:MAX_TEXT]}"
    return analyze.replace_unindexable(text)


def _join_strings(value: Any, write_id: Callable[[str], str] = machine_id_word) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return "\n".join(_strings(value, write_id))


def _strings(value: Any, write_id: Callable[[str], str] = machine_id_word, depth: int = 0) -> Iterator[str]:
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
                yield from _arguments(parse_if_text(item), depth + 1)
            elif key in _IDS and isinstance(item, str):
                # People do not write ids, programs do: an id is one word, so that its parts match nothing.
                yield write_id(item)
            elif key not in _STRUCTURE:
                yield from _strings(item, write_id, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item, write_id, depth + 1)
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
        yield from _strings(value, depth=depth)
