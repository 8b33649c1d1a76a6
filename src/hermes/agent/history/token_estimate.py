"""Token estimates: approximate, because every model counts differently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hermes.agent.models.model import Message, ToolSchema

BYTES_PER_TOKEN = 4
PER_MESSAGE = 4
"""The tokens that the role of a message takes."""
PER_IMAGE = 1_000
CONTEXT_TOKENS = 128_000
"""The context window that is assumed when a model's own is unknown."""


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text: a quarter of its bytes, which suits English and Chinese alike."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def compression_limit(context_tokens: int | None, threshold: float) -> int:
    """How many tokens a conversation may have before it is compressed."""
    return int((context_tokens or CONTEXT_TOKENS) * min(threshold, 1.0))


def tokens_of_conversation(messages: Iterable[Message], tools: Sequence[ToolSchema] = ()) -> int:
    """Estimate the tokens of messages and tool schemas together."""
    return sum(map(_tokens_of_message, messages)) + sum(tokens_of(repr(tool)) for tool in tools)


def _tokens_of_message(message: Message) -> int:
    calls = message.get("tool_calls") or ()
    called = sum(tokens_of(call["function"]["name"] + call["function"]["arguments"]) for call in calls)
    return PER_MESSAGE + called + _tokens_of_content(message.get("content"))


def _tokens_of_content(content: Any) -> int:
    if isinstance(content, list):
        return sum(tokens_of(part["text"]) if part["type"] == "text" else PER_IMAGE for part in content)
    return tokens_of(content or "")
