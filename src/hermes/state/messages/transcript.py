"""Format conversations as text, shortened around the searched words. Nothing here reads a store."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import normalize

from hermes.query.analyze import fold
from hermes.query.parse import parse
from hermes.query.tree import wanted_leaves
from hermes.state.rows import AnyRow, Row, encode_json, flatten_text, tool_names

TRANSCRIPT_CHARACTERS = 100_000
MESSAGE_CHARACTERS = 4_000
TOOL_CHARACTERS = 500
NEAR = 200
"""How close words must be to count as adjacent."""

EARLIER = "[... earlier text left out ...]\n\n"
LATER = "\n\n[... later text left out ...]"

_MAX_CALLS = 20


def format_moment(moment: Any) -> str:
    """Format a time for people, in local time: `November 15, 2026 at 07:23 PM`."""
    if moment is None:
        return "unknown"
    try:
        return time.strftime("%B %d, %Y at %I:%M %p", time.localtime(float(moment)))
    except (TypeError, ValueError, OverflowError, OSError):
        return str(moment)


def extract_terms(query: str) -> list[str]:
    """Return the words and phrases that a query searches for, folded."""
    tree = parse(query).tree
    return [] if tree is None else list(dict.fromkeys(leaf.text for leaf in wanted_leaves(tree)))


def format_transcript(messages: Iterable[AnyRow], sought: Sequence[str] = ()) -> str:
    """Format a conversation as paragraphs, each starting with the role; tool results are shortened."""
    return "\n\n".join(paragraph for message in messages if (paragraph := _paragraph(message, sought)))


def cut_around(text: str, sought: Sequence[str], size: int = TRANSCRIPT_CHARACTERS) -> str:
    """Return about `size` characters of a text, with as many of the searched terms as possible.

    It prefers all terms side by side, then all close together, then any of them, then the start of the text.
    """
    if len(text) <= size:
        return text
    text = normalize("NFC", text)
    start = _best_start(_places(text, sought), size, len(text))
    end = start + size
    return EARLIER * (start > 0) + text[start:end] + LATER * (end < len(text))


def shorten(text: str, size: int) -> str:
    """Return the start and the end of a text that is too long."""
    if len(text) <= size:
        return text
    half = size // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def format_message(
    message: AnyRow, *, anchor_id: int | None = None, sought: Sequence[str] = (), size: int = MESSAGE_CHARACTERS
) -> Row:
    """Return a message for the model: without empty fields, and with long ones cut and marked."""
    is_anchor = message["id"] == anchor_id
    content = _limit_content(message["content"], sought if is_anchor else (), size)
    calls = _limit_calls(message["tool_calls"], size)
    row = {"id": message["id"], "role": message["role"], "content": content, "timestamp": message["timestamp"]}
    optional = {
        "tool_name": message["tool_name"],
        "tool_calls": calls,
        "tool_call_id": message["tool_call_id"],
        "anchor": is_anchor,
        "truncated": content != message["content"] or calls != message["tool_calls"],
    }
    return row | {name: value for name, value in optional.items() if value}


def _paragraph(message: AnyRow, sought: Sequence[str]) -> str:
    text = flatten_text(message["content"])
    speaker = message["role"].upper()
    if message["role"] == "tool":
        speaker = f"{speaker} {message.get('tool_name') or ''}".rstrip()
        text = _cut_text(text, sought, TOOL_CHARACTERS)
    called = tool_names(message.get("tool_calls"))
    lines = [text, f"called: {', '.join(called)}" if called else ""]
    paragraph = "\n".join(line for line in lines if line)
    return f"[{speaker}] {paragraph}" if paragraph else ""


def _limit_content(content: Any, sought: Sequence[str], size: int) -> Any:
    if isinstance(content, str):
        return _cut_text(content, sought, size)
    if content is None or len(encode_json(content)) <= size:
        return content
    return _cut_text(flatten_text(content), sought, size)


def _cut_text(text: str, sought: Sequence[str], size: int) -> str:
    """Return a text around the searched terms, or its two ends if it has none of them."""
    if len(text) <= size:
        return text
    return cut_around(text, sought, size) if _places(normalize("NFC", text), sought) else shorten(text, size)


def _limit_calls(tool_calls: Any, size: int) -> Any:
    """Return tool calls unchanged, or with their names and the ends of their arguments if they are too long."""
    if not tool_calls or len(encode_json(tool_calls)) <= size:
        return tool_calls
    calls = tool_calls[:_MAX_CALLS] if isinstance(tool_calls, list) else [tool_calls]
    return [_limit_call(call, size // len(calls)) for call in calls]


def _limit_call(call: Any, size: int) -> Row:
    function = call.get("function") if isinstance(call, dict) else None
    source = function if isinstance(function, dict) else call if isinstance(call, dict) else {"arguments": call}
    arguments = source.get("arguments", "")
    text = arguments if isinstance(arguments, str) else encode_json(arguments)
    name = "".join(tool_names([call]))
    return {"function": {"name": shorten(name, size), "arguments": shorten(text, size)}}


def _places(text: str, sought: Sequence[str]) -> list[int]:
    """Return the positions of the searched terms, by the strictest rule that finds any."""
    folded, origin = _fold_with_positions(text)
    together = _occurrences(folded, " ".join(sought))
    each = [_occurrences(folded, one) for one in sought]
    rarest = min(each, key=len, default=[])
    close = [place for place in rarest if all(_is_near(others, place) for others in each)]
    anywhere = sorted(place for places in each for place in places)
    return [origin[place] for place in together or close or anywhere]


def _fold_with_positions(text: str) -> tuple[str, Sequence[int]]:
    """Return the folded text, and for each of its characters the position of the original."""
    forms = {each: " " if each.isspace() else fold(each) for each in set(text)}
    folded = text.translate({ord(each): form for each, form in forms.items()})
    if all(len(form) == 1 for form in forms.values()):
        return folded, range(len(text))
    return folded, [position for position, each in enumerate(text) for _ in forms[each]]


def _occurrences(folded: str, one: str) -> list[int]:
    places: list[int] = []
    at = folded.find(one) if one else -1
    while at >= 0:
        places.append(at)
        at = folded.find(one, at + len(one))
    return places


def _is_near(places: Sequence[int], place: int) -> bool:
    return bisect_left(places, place - NEAR) < bisect_right(places, place + NEAR)


def _best_start(places: Sequence[int], size: int, length: int) -> int:
    """Return the start of the part with the most positions: a quarter of its size before one of them."""
    starts = [max(0, min(place - size // 4, length - size)) for place in places]
    return max(starts, key=lambda at: bisect_left(places, at + size) - bisect_left(places, at), default=0)
