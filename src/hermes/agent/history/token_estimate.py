"""How much a model has to read: an estimate, because every model counts in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hermes.agent.models.model import Message, ToolSchema

BYTES_PER_TOKEN = 4
PER_MESSAGE = 4
"""What it takes to say whose message it is."""
PER_IMAGE = 1_000
CONTEXT_TOKENS = 128_000
"""What is assumed of a model of which nobody knows how much it can read."""


def tokens_of(text: str) -> int:
    """About how many tokens a text is: a quarter of its bytes, which does for English and for Chinese alike."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def room_for(context_tokens: int | None, threshold: float) -> int:
    """How many tokens a conversation may have for a model before it is made shorter."""
    return int((context_tokens or CONTEXT_TOKENS) * min(threshold, 1.0))


def tokens_of_conversation(messages: Iterable[Message], tools: Sequence[ToolSchema] = ()) -> int:
    """About how many tokens a model reads when it is given these messages and told of these tools."""
    return sum(map(_tokens_of_message, messages)) + sum(tokens_of(repr(tool)) for tool in tools)


def _tokens_of_message(message: Message) -> int:
    calls = message.get("tool_calls") or ()
    called = sum(tokens_of(call["function"]["name"] + call["function"]["arguments"]) for call in calls)
    return PER_MESSAGE + called + _tokens_of_content(message.get("content"))


def _tokens_of_content(content: Any) -> int:
    if isinstance(content, list):
        return sum(tokens_of(part["text"]) if part["type"] == "text" else PER_IMAGE for part in content)
    return tokens_of(content or "")
