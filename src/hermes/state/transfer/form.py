"""The one form in which rows of every engine are the same: in it they are carried, and in it they are compared.

A store's own rows have it already. Old and foreign files may hold anything anywhere: bytes for text, text for numbers,
nothing where something must be.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hermes.state.bookings import COLUMNS as BOOKING
from hermes.state.engine import Values
from hermes.state.incoming import UNDECIDED, fitting_title
from hermes.state.rows import (
    MARK,
    OLD_MARK,
    Stored,
    decode_content,
    derived_uid,
    encode_content,
    encode_text,
    tool_names,
)
from hermes.state.sessions import tick
from hermes.state.usage import COSTS, COUNTERS

NUMBERS = frozenset(
    {"listed", "archived", "pinned", "active_tick", "message_count", "tool_call_count", "rewind_count", *COUNTERS}
    | {"active", "observed", "token_count"}
)
MOMENTS = frozenset({"started_at", "last_active", "chain_active", "ended_at", "timestamp", "at", *COSTS})

SESSION = (
    *("id", "source", "user_id", "owner", "parent_session_id", "child_kind", "chain_root", "listed", "archived"),
    *("pinned", "started_at", "last_active", "chain_active", "active_tick", "ended_at", "end_reason", "message_count"),
    *("tool_call_count", "rewind_count", "api_call_count", "input_tokens", "output_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source"),
    *("pricing_version", "billing_provider", "billing_base_url", "billing_mode", "title", "model", "handoff_state"),
    *("handoff_platform", "handoff_error", "cwd", "preview", "model_config", "system_prompt", "imported_from"),
)
"""The columns of a session, all of which are carried."""

MESSAGE = (
    *("id", "session_id", "role", "uid", "timestamp", "active", "observed", "token_count", "finish_reason"),
    *("platform_message_id", "tool_call_id", "tool_name", "tool_calls", "content", "reasoning", "reasoning_content"),
    *("reasoning_details", "codex_reasoning_items", "codex_message_items"),
)
"""The columns of a message, all of which are carried."""

_SESSION_DEFAULTS = {"source": "unknown", "listed": 1} | dict.fromkeys(
    ("archived", "pinned", "message_count", "tool_call_count", "rewind_count"), 0
)
_MESSAGE_DEFAULTS: tuple[tuple[int, Any], ...] = tuple(
    (MESSAGE.index(name), default) for name, default in (("role", "unknown"), ("timestamp", 0.0), ("active", 1))
)
_ID, _SESSION_ID, _ROLE, _UID, _TIMESTAMP, _ACTIVE, _CONTENT = (
    MESSAGE.index(name) for name in ("id", "session_id", "role", "uid", "timestamp", "active", "content")
)
_MESSAGE_NUMBERS = [place for place, name in enumerate(MESSAGE) if name in NUMBERS]
_MESSAGE_TEXTS = [
    place for place, name in enumerate(MESSAGE) if name not in NUMBERS | MOMENTS and name not in ("id", "content")
]


class Message(NamedTuple):
    """A message in this form."""

    id: int
    session_id: str
    uid: str
    active: int
    values: Values
    """In the order of `MESSAGE`."""

    @property
    def said(self) -> Values:
        """What of it is the same in every store that it is carried to: all but its id."""
        return self.values[1:]


def session_form(row: dict[str, Any]) -> dict[str, Any]:
    """A session's columns in this form."""
    formed = {name: _formed(name, row.get(name)) for name in SESSION}
    for name, default in _SESSION_DEFAULTS.items():
        if formed[name] is None:
            formed[name] = default
    formed["started_at"] = formed["started_at"] or 0.0
    for name, substitute in (("last_active", "started_at"), ("chain_active", "last_active")):
        if formed[name] is None:
            formed[name] = formed[substitute]
    if formed["active_tick"] is None:
        formed["active_tick"] = tick(formed["chain_active"])
    if formed["child_kind"] == UNDECIDED:
        formed["child_kind"] = None
    formed["title"] = None if formed["title"] is None else fitting_title(formed["title"])
    return formed


def message_form(values: Values) -> Message:
    """A message, given in the order of `MESSAGE`, in this form."""
    formed = list(values)
    if formed[_UID] is None:
        formed[_UID] = derived_uid(formed[_ID], formed[_TIMESTAMP], formed[_ROLE], formed[_CONTENT])
    formed[_CONTENT] = _content(formed[_CONTENT])
    if type(formed[_TIMESTAMP]) is not float or not math.isfinite(formed[_TIMESTAMP]):
        formed[_TIMESTAMP] = _moment(formed[_TIMESTAMP])
    for place in _MESSAGE_TEXTS:
        value = formed[place]
        if value is not None and not (type(value) is str and value.isascii() and value.isprintable()):
            formed[place] = text_form(value)
    for place in _MESSAGE_NUMBERS:
        if formed[place] is not None and type(formed[place]) is not int:
            formed[place] = _number(formed[place])
    for place, default in _MESSAGE_DEFAULTS:
        if formed[place] is None:
            formed[place] = default
    return Message(formed[_ID], formed[_SESSION_ID], formed[_UID], formed[_ACTIVE], tuple(formed))


def booking_form(values: Sequence[Any]) -> Values:
    """A booking of tokens, given in the order of `BOOKING`, in this form."""
    formed = {name: _formed(name, value) for name, value in zip(BOOKING, values, strict=True)}
    for name in COUNTERS:
        formed[name] = formed[name] or 0
    return tuple(formed.values())


def tools_of(tool_calls: Iterable[Any]) -> Counter[str]:
    """How often each tool is called in what messages hold."""
    tools: Counter[str] = Counter()
    for stored in tool_calls:
        try:
            tools.update(tool_names(json.loads(stored)))
        except (TypeError, ValueError):
            continue  # then nobody can tell which tools
    return tools


def _formed(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in NUMBERS:
        return _number(value)
    return _moment(value) if name in MOMENTS else text_form(value)


def text_form(value: Any) -> str:
    """A value of a column of text in this form."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    elif not isinstance(value, str):
        value = str(value)
    if value.startswith(MARK):
        return Stored(value)
    return encode_text(value)


def _content(value: Any) -> str | None:
    if value is None or (type(value) is str and value.isascii() and value.isprintable()):
        return value
    if isinstance(value, str) and value.startswith(OLD_MARK):
        content = decode_content(value)
        return encode_content(content) if isinstance(content, list | dict) else text_form(value)
    return text_form(value)


def _moment(value: Any) -> float | None:
    try:
        moment = float(value)
    except (TypeError, ValueError):
        return None
    # What is less than nothing by a sign alone is not told apart by every engine.
    return moment + 0.0 if math.isfinite(moment) else None


def _number(value: Any) -> int | None:
    if type(value) is int:
        return value
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
