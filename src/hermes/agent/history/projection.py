"""The projection of stored messages to the messages that a model reads, repaired where endpoints would refuse them.

A stored history may be in any state: cut off by a crash, written by several programs at once, full of a model's
nonsense. The result is accepted by strict endpoints of every kind: it begins with the user, user and model alternate,
and every tool call is followed by exactly one result. No text of the user or the model is left out. The same history
always gives the same messages, so that endpoints find them in their caches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes.agent.history.attachments import is_attached
from hermes.agent.history.images import UNSEEN, Part, is_image, limit_images
from hermes.agent.history.text_limits import valid_text
from hermes.agent.history.tool_results import History, ToolCallPairing
from hermes.agent.models.model import Message
from hermes.state.rows import part_text

BEGINNING = "[The beginning of this conversation is not shown.]"
NO_OUTPUT = "[no output]"
UNANSWERED = "[This message was not answered: the turn was stopped.]"

_USER_ROLES = frozenset(("user", "system", "developer"))
"""The roles that the model reads as the user."""
_SEPARATOR = "\n\n"


@dataclass(slots=True)
class _ModelMessage:
    """A message for the model."""

    role: str
    parts: list[Part]
    """Texts and images."""
    calls: list[Part] = field(default_factory=list)
    call_id: str = ""

    @property
    def text(self) -> str:
        return _SEPARATOR.join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def message(self) -> Message:
        if self.role == "tool":
            return {"role": "tool", "tool_call_id": self.call_id, "content": self.text or NO_OUTPUT}
        if self.role == "user" and any(part["type"] != "text" for part in self.parts):
            return {"role": "user", "content": self.parts}
        if self.calls:
            return {"role": self.role, "content": self.text or None, "tool_calls": self.calls}
        return {"role": self.role, "content": self.text}


def project(history: History, *, with_tools: bool = True, with_images: bool = True) -> list[Message]:
    """Return the messages for a model; without tools, tool calls and results are described as text.

    Without images, a text is in their places.
    """
    merged: list[_ModelMessage] = []
    for message in _model_messages(history) if with_tools else map(_without_tools, _model_messages(history)):
        _add(merged, message)
    if merged and merged[0].role != "user":
        merged.insert(0, _ModelMessage("user", [_text_part(BEGINNING)]))
    if not with_images:
        for each in merged:
            each.parts = [_text_part(UNSEEN) if part["type"] == "image_url" else part for part in each.parts]
    limit_images([each.parts for each in merged])
    return [each.message for each in merged]


def _model_messages(history: History) -> Iterator[_ModelMessage]:
    """Yield the messages in order, each tool result right after its call, wherever it was stored."""
    pairing = ToolCallPairing(history)
    unanswered: list[Part] = []
    context: list[Part] = []
    """The attached context of the message that is unanswered."""
    is_waiting = is_stopped = False
    for place, row in enumerate(history):
        if row["role"] in _USER_ROLES:
            parts = list(_parts(row["content"], with_images=row["role"] == "user"))
            if is_attached(row):
                if parts != context:
                    yield _ModelMessage("user", list(parts))
                    context = parts
                continue
            # A user who repeats a message because it got no answer is shown to the model only once.
            if parts and parts != unanswered:
                # Messages in a row belong together, unless the user stopped the turn between them.
                if is_stopped and _is_turn(row):
                    yield _ModelMessage("assistant", [_text_part(UNANSWERED)])
                yield _ModelMessage("user", list(parts))
                unanswered, is_waiting, is_stopped = parts, _is_turn(row), False
        elif row["role"] == "assistant":
            called = pairing.calls_at(place)
            answer = _ModelMessage("assistant", list(_parts(row["content"])), [each.call for each in called])
            if answer.parts or called:
                unanswered, context, is_waiting, is_stopped = [], [], False, False
                yield answer
            else:
                is_stopped = is_waiting
            for each in called:
                yield _ModelMessage("tool", list(_parts(each.result)), call_id=each.id)


def _is_turn(row: Mapping[str, Any]) -> bool:
    """Whether a row is a message to the model, and not one observed in a group chat."""
    return bool(row["role"] == "user") and not row.get("observed")


def _without_tools(message: _ModelMessage) -> _ModelMessage:
    """Return a message with tool calls and results as text."""
    if message.role == "tool":
        return _ModelMessage("user", [_text_part(f"[The tool returned: {message.text or NO_OUTPUT}]")])
    calls = [f"[Called {call['function']['name']} with {call['function']['arguments']}]" for call in message.calls]
    return _ModelMessage(message.role, [*message.parts, *map(_text_part, calls)])


def _add(merged: list[_ModelMessage], message: _ModelMessage) -> None:
    """Append a message, or merge it into the last one if that has the same role."""
    last = merged[-1] if merged else None
    if last is None or last.role != message.role or message.role == "tool":
        merged.append(message)
        return
    last.parts += message.parts
    last.calls = message.calls


def _parts(content: Any, *, with_images: bool = False) -> Iterator[Part]:
    """Yield the texts of a content, and its images where they are allowed."""
    for each in content if isinstance(content, list | tuple) else [content]:
        if with_images and is_image(each):
            yield {"type": "image_url", "image_url": {"url": valid_text(each["image_url"]["url"])}}
            continue
        text = valid_text(part_text(each))
        if text.strip():
            yield _text_part(text)


def _text_part(text: str) -> Part:
    return {"type": "text", "text": text}
