"""Drafts: messages that are checked and encoded, and only need to be inserted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from hermes.errors import InvalidValue
from hermes.ids import new_message_uid
from hermes.state.rows import (
    Row,
    count_tool_calls,
    encode_content,
    encode_json,
    make_preview,
    optional_amount,
    optional_integer,
    optional_text,
    parse_timestamp,
    require_identifier,
    tool_names,
)

REASONING_FIELDS = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
)
JSON_FIELDS = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
TEXT_FIELDS = (
    "tool_name",
    "tool_call_id",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "platform_message_id",
    "uid",
)
MAX_CHARACTERS = 16 * 1024 * 1024
"""The maximum length of a message: all of its stored texts together."""
MESSAGE_FIELDS = frozenset({"role", "content", "token_count", "observed", "timestamp", *JSON_FIELDS, *TEXT_FIELDS})


class Draft(NamedTuple):
    """A message ready to be inserted, with its effect on the session's counters."""

    values: Row
    is_active: bool
    is_repeatable: bool
    """Whether its uid came from the caller, so that it may be stored already."""
    tool_calls: int
    tools: list[str]
    preview: str | None

    @property
    def is_simple(self) -> bool:
        """Whether it changes no other counter than the number of messages, and cannot be stored already."""
        return self.is_active and not self.is_repeatable and not self.tool_calls and not self.tools


def draft_message(fields: Mapping[str, Any], now: float, *, active: bool = True) -> Draft:
    """Return a checked and encoded message; a column without a value keeps its default."""
    role = require_identifier(fields.get("role"), "role")
    values: Row = {"role": role, "timestamp": now}
    length = len(role)
    for name, value in fields.items():
        if value is None or name == "role":
            continue
        if name == "content":
            stored = value if type(value) is str else encode_content(value) or ""
        elif name == "timestamp":
            values[name] = value if type(value) is float and isfinite(value) else parse_timestamp(value, now)
            continue
        elif name == "token_count":
            values[name] = optional_integer(value, name)
            continue
        elif name == "observed":
            if value:
                values[name] = 1
            continue
        elif name in JSON_FIELDS:
            if not value:
                continue
            stored = encode_json(value)
        elif name == "uid":
            stored = require_identifier(value, name)
        elif name == "platform_message_id" and type(value) is int:
            stored = str(value)
        else:
            stored = optional_text(value, name) or ""
        values[name] = stored
        length += len(stored)
    if length > MAX_CHARACTERS:
        raise InvalidValue(
            f"the message is longer than {MAX_CHARACTERS} characters",
            hint="store the long part in a file, and name the file in the message",
        )
    is_repeatable = "uid" in values
    if not is_repeatable:
        values["uid"] = new_message_uid()
    if not active:
        values["active"] = 0
    content, tool_calls = fields.get("content"), fields.get("tool_calls")
    preview = make_preview(content) if content is not None and role == "user" else None
    if not tool_calls:
        return Draft(values, active, is_repeatable, 0, [], preview)
    return Draft(values, active, is_repeatable, count_tool_calls(tool_calls), tool_names(tool_calls), preview)


def check_fields(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `message` if it is a dict with only the fields of a message."""
    if type(message) is not dict and not isinstance(message, Mapping):
        raise InvalidValue(f"a message must be a dict, not {type(message).__name__}")
    if not MESSAGE_FIELDS.issuperset(message):
        raise InvalidValue(f"a message has no field {sorted(map(str, set(message) - MESSAGE_FIELDS))[0]!r}")
    optional_amount(message.get("token_count"), "token_count")
    return message


def add_timestamps(messages: Iterable[Mapping[str, Any]], now: float) -> list[Row]:
    """Return the messages of a replaced transcript, each with its own time or one after all earlier ones."""
    clock, stamped = now, []
    for message in messages:
        if not isinstance(message, Mapping):
            raise InvalidValue(f"a message must be a dict, not {type(message).__name__}")
        fields = {name: value for name, value in message.items() if name in MESSAGE_FIELDS}
        fields["role"] = fields.get("role") or "unknown"
        fields["platform_message_id"] = message.get("platform_message_id") or message.get("message_id")
        if fields["role"] != "assistant":
            for name in REASONING_FIELDS:
                fields.pop(name, None)
        fields["timestamp"] = parse_timestamp(fields.get("timestamp"), clock)
        clock = max(clock, fields["timestamp"]) + 1e-6
        stamped.append(fields)
    return stamped
