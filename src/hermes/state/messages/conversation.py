"""Turn stored messages into the conversation that a model receives; this is the only place that does so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes.state.rows import decode_content, decode_json, decode_text

if TYPE_CHECKING:
    from hermes.state.row_types import ConversationMessage

CONVERSATION_COLUMNS = """role, content, timestamp, tool_call_id, tool_name, tool_calls, platform_message_id, observed,
    finish_reason, reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items"""

MARKS = ("\x00", "\x01")
SPEAKERS = ("user", "assistant")

_FENCE = re.compile(r"<\s*+(/?+)\s*+memory-context\s*+>", re.IGNORECASE)
_NOTE = re.compile(r"\[system note:", re.IGNORECASE)
_RECALLED = re.compile("recalled memory", re.IGNORECASE)


def project(rows: Iterable[tuple[Any, ...]], *, drop_repeats: bool = False) -> list[ConversationMessage]:
    """Return stored rows as conversation messages, in the same order."""
    messages = [_message(row) for row in rows]
    return _drop_repeated_user_messages(messages) if drop_repeats else messages


class ChainMessage(NamedTuple):
    """A message of one session in a chain of compressions."""

    uid: str
    is_active: bool
    row: tuple[Any, ...]
    """The values of `CONVERSATION_COLUMNS`."""


def merge_chain(sessions: Iterable[Iterable[ChainMessage]], *, include_inactive: bool = False) -> list[tuple[Any, ...]]:
    """Return the messages of a chain, oldest session first; each keeps its first position and has its newest values."""
    newest: dict[tuple[str, int], ChainMessage] = {}
    others: Counter[str] = Counter()
    """How many messages share a uid without being copies: callers choose uids that are unique within one session."""
    for session in sessions:
        for message in session:
            known = newest.get((message.uid, others[message.uid]))
            if known is not None and not _is_copy(message.row, known.row):
                others[message.uid] += 1
            newest[message.uid, others[message.uid]] = message
    return [message.row for message in newest.values() if message.is_active or include_inactive]


def _is_copy(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    role, content, timestamp = row[:3]
    return bool(timestamp == other[2] or (role, content) == other[:2])


def strip_memory_fences(text: str) -> str:
    """Remove the text that was recalled from memory and inserted for one turn."""
    # A cheap test for the two usual spellings first: every turn sends a whole conversation through here.
    if "emory" in text or "EMORY" in text:
        text = _FENCE.sub("", _strip_notes(_strip_fenced(text)))
    return text.strip()


def _strip_fenced(text: str) -> str:
    """Remove everything from an opening fence to the next closing one, in one pass."""
    kept, at, opened = [], 0, -1
    for fence in _FENCE.finditer(text):
        if not fence[1]:
            opened = fence.start() if opened < 0 else opened
        elif opened >= 0:
            kept.append(text[at:opened])
            at, opened = fence.end(), -1
    return "".join([*kept, text[at:]])


def _strip_notes(text: str) -> str:
    """Remove the notes about recalled memory, each up to its closing bracket."""
    kept, at, searched = [], 0, 0
    while note := _NOTE.search(text, searched):
        end = text.find("]", note.end())
        if end < 0:
            break
        # A note that starts later and ends at the same bracket is part of this one.
        searched = end + 1
        if _RECALLED.search(text, note.end(), end):
            kept.append(text[at : note.start()])
            at = searched
    return "".join([*kept, text[at:]])


def _message(row: tuple[Any, ...]) -> ConversationMessage:
    role, content, timestamp, call_id, tool_name, tool_calls, platform_id, observed, *thinking = row
    if type(content) is str:
        if content[:1] in MARKS:
            content = decode_content(content)
        if role in SPEAKERS and type(content) is str:
            content = strip_memory_fences(content)
    message: ConversationMessage = {"role": role, "content": content}
    if timestamp:
        message["timestamp"] = timestamp
    if call_id:
        message["tool_call_id"] = decode_text(call_id)
    if tool_name:
        message["tool_name"] = decode_text(tool_name)
    if tool_calls:
        message["tool_calls"] = decode_json(tool_calls, otherwise=[], what="tool_calls")
    if platform_id:
        message["message_id"] = decode_text(platform_id)
    if observed:
        message["observed"] = True
    if role == "assistant":
        _add_thinking(message, *thinking)
    return message


def _add_thinking(
    message: ConversationMessage,
    finish_reason: str | None,
    reasoning: str | None,
    reasoning_content: str | None,
    reasoning_details: str | None,
    codex_reasoning_items: str | None,
    codex_message_items: str | None,
) -> None:
    if finish_reason:
        message["finish_reason"] = decode_text(finish_reason)
    if reasoning:
        message["reasoning"] = decode_text(reasoning)
    if reasoning_content is not None:
        message["reasoning_content"] = decode_text(reasoning_content)
    if reasoning_details:
        message["reasoning_details"] = decode_json(reasoning_details, otherwise=None, what="reasoning_details")
    if codex_reasoning_items:
        message["codex_reasoning_items"] = decode_json(
            codex_reasoning_items, otherwise=None, what="codex_reasoning_items"
        )
    if codex_message_items:
        message["codex_message_items"] = decode_json(codex_message_items, otherwise=None, what="codex_message_items")


def _drop_repeated_user_messages(messages: list[ConversationMessage]) -> list[ConversationMessage]:
    """Drop a user message that is repeated before any answer: a copy that compression carried over."""
    kept, unanswered = [], set()
    for message in messages:
        content = message["content"]
        if message["role"] == "user" and isinstance(content, str) and content:
            if content in unanswered:
                continue
            unanswered.add(content)
        elif message["role"] == "assistant" and (content or message.get("tool_calls")):
            unanswered.clear()
        kept.append(message)
    return kept
