"""What a model is given of a conversation: the stored messages, repaired where endpoints would refuse them.

A stored history is the truth and may be anything: cut off by a crash, written by several programs at once, by models
that wrote nonsense. What comes out is accepted by strict readers of both schools: it begins with the person, person and
model take turns, and every tool call has its one result right behind it. Nothing that a person or a model said is left
out. The same history always gives the same messages, so that endpoints find their beginning in their caches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes.agent.history.text_limits import valid_text
from hermes.agent.history.tool_results import History, ToolCallPairing
from hermes.agent.models.model import Message

BEGINNING = "[The beginning of this conversation is not shown.]"
NO_OUTPUT = "[no output]"
UNANSWERED = "[This message was not answered: the turn failed or was stopped.]"

_HEARD = frozenset(("user", "system", "developer"))
"""Whose words a model hears in the place of the person's."""
_APART = "\n\n"

Part = dict[str, Any]


@dataclass(slots=True)
class _ModelMessage:
    """A message on its way to the model."""

    role: str
    parts: list[Part]
    """Texts and images."""
    calls: list[Part] = field(default_factory=list)
    call_id: str = ""

    @property
    def text(self) -> str:
        return _APART.join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def message(self) -> Message:
        if self.role == "tool":
            return {"role": "tool", "tool_call_id": self.call_id, "content": self.text or NO_OUTPUT}
        if self.role == "user" and any(part["type"] != "text" for part in self.parts):
            return {"role": "user", "content": self.parts}
        if self.calls:
            return {"role": self.role, "content": self.text or None, "tool_calls": self.calls}
        return {"role": self.role, "content": self.text}


def project(history: History, *, with_tools: bool = True) -> list[Message]:
    """A history as a model is given it; without tools, what they did is told in words."""
    merged: list[_ModelMessage] = []
    for said in _model_messages(history) if with_tools else map(_without_tools, _model_messages(history)):
        _add(merged, said)
    if merged and merged[0].role != "user":
        merged.insert(0, _ModelMessage("user", [_text_part(BEGINNING)]))
    return [each.message for each in merged]


def _model_messages(history: History) -> Iterator[_ModelMessage]:
    """The messages in their order, the result of a tool behind its call wherever it was stored."""
    pairing = ToolCallPairing(history)
    unanswered: list[Part] = []
    is_waiting = False
    for place, row in enumerate(history):
        if row["role"] in _HEARD:
            parts = list(_parts(row["content"], with_images=row["role"] == "user"))
            # Who says the same once more, because there was no answer, has said it once.
            if parts and parts != unanswered:
                if is_waiting and _is_turn(row):
                    yield _ModelMessage("assistant", [_text_part(UNANSWERED)])
                yield _ModelMessage("user", list(parts))
                unanswered, is_waiting = parts, _is_turn(row)
        elif row["role"] == "assistant":
            called = pairing.calls_at(place)
            answer = _ModelMessage("assistant", list(_parts(row["content"])), [each.call for each in called])
            if answer.parts or called:
                unanswered, is_waiting = [], False
                yield answer
            for each in called:
                yield _ModelMessage("tool", list(_parts(each.result)), call_id=each.id)


def _is_turn(row: Mapping[str, Any]) -> bool:
    """Whether a row is what a person said to the model, and not only overheard in a group."""
    return bool(row["role"] == "user") and not row.get("observed")


def _without_tools(said: _ModelMessage) -> _ModelMessage:
    """A message in which tools are only told of."""
    if said.role == "tool":
        return _ModelMessage("user", [_text_part(f"[The tool answered: {said.text or NO_OUTPUT}]")])
    told = [f"[Called {call['function']['name']} with {call['function']['arguments']}]" for call in said.calls]
    return _ModelMessage(said.role, [*said.parts, *map(_text_part, told)])


def _add(merged: list[_ModelMessage], said: _ModelMessage) -> None:
    """Append a message, or join it to the last one where the same side goes on."""
    last = merged[-1] if merged else None
    if last is None or last.role != said.role or said.role == "tool":
        merged.append(said)
        return
    last.parts += said.parts
    last.calls = said.calls


def _parts(content: Any, *, with_images: bool = False) -> Iterator[Part]:
    """The texts of a content, and its images where they can be shown."""
    for each in content if isinstance(content, list | tuple) else [content]:
        if with_images and _is_image(each):
            yield {"type": "image_url", "image_url": {"url": valid_text(each["image_url"]["url"])}}
            continue
        text = valid_text(_part_text(each))
        if text.strip():
            yield _text_part(text)


def _part_text(part: Any) -> str:
    """What can be read of a part."""
    if part is None:
        return ""
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, dict) and isinstance(part.get("type"), str):
        return f"[{part['type']}]"
    return json.dumps(part, ensure_ascii=False)


def _is_image(part: Any) -> bool:
    if not isinstance(part, dict) or part.get("type") != "image_url" or not isinstance(part.get("image_url"), dict):
        return False
    return isinstance(url := part["image_url"].get("url"), str) and bool(url.strip())


def _text_part(text: str) -> Part:
    return {"type": "text", "text": text}
