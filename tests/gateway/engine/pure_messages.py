"""Waiting messages for tests of pure functions."""

from __future__ import annotations

from typing import Any

from hermes.gateway import Platform, SessionSource
from hermes.gateway.engine.messages import Message
from hermes.state.lanes.types import MessageKind


def message(number: int, kind: MessageKind = "normal", sender: str = "a", **fields: Any) -> Message:
    """A message of a user; messages come a second after one another unless `at` is given."""
    at = fields.pop("at", float(number))
    source = fields.pop("source", SessionSource(Platform.TELEGRAM, "-9", chat_type="group", user_id=sender))
    if kind == "command":
        fields.setdefault("command", "status")
    if kind == "internal":
        fields.setdefault("internal", "resume")
    text = fields.pop("text", f"text {number}")
    return Message(number, f"u{number}", kind, text, source, f"m{number}", at, **fields)
