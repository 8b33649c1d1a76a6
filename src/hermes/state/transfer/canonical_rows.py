"""The canonical form of rows, the same for every engine: rows are copied and compared in this form.

A store's own rows already have it. Old and foreign files may hold any value in any column: bytes instead of text, text
instead of numbers, NULL in a required column.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hermes.state.engine import Values
from hermes.state.import_export.session_checks import UNDECIDED, shorten_title
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
from hermes.state.sessions.records import activity_tick
from hermes.state.usage.counters import COSTS, COUNTERS
from hermes.state.usage.events import EVENT_COLUMNS

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
"""The columns of a session; all are copied."""

MESSAGE = (
    *("id", "session_id", "role", "uid", "timestamp", "active", "observed", "token_count", "finish_reason"),
    *("platform_message_id", "tool_call_id", "tool_name", "tool_calls", "content", "reasoning", "reasoning_content"),
    *("reasoning_details", "codex_reasoning_items", "codex_message_items"),
)
"""The columns of a message; all are copied."""

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
    """A message in canonical form."""

    id: int
    session_id: str
    uid: str
    active: int
    values: Values
    """The values in the order of `MESSAGE`."""

    @property
    def without_id(self) -> Values:
        """The values that are the same in every copy: all but the id."""
        return self.values[1:]


def canonical_session(row: dict[str, Any]) -> dict[str, Any]:
    """Return a session's columns in canonical form."""
    canonical = {name: _canonical_value(name, row.get(name)) for name in SESSION}
    for name, default in _SESSION_DEFAULTS.items():
        if canonical[name] is None:
            canonical[name] = default
    canonical["started_at"] = canonical["started_at"] or 0.0
    for name, substitute in (("last_active", "started_at"), ("chain_active", "last_active")):
        if canonical[name] is None:
            canonical[name] = canonical[substitute]
    if canonical["active_tick"] is None:
        canonical["active_tick"] = activity_tick(canonical["chain_active"])
    if canonical["child_kind"] == UNDECIDED:
        canonical["child_kind"] = None
    canonical["title"] = None if canonical["title"] is None else shorten_title(canonical["title"])
    return canonical


def canonical_message(values: Values) -> Message:
    """Return a message, given in the order of `MESSAGE`, in canonical form."""
    canonical = list(values)
    if canonical[_UID] is None:
        canonical[_UID] = derived_uid(canonical[_ID], canonical[_TIMESTAMP], canonical[_ROLE], canonical[_CONTENT])
    canonical[_CONTENT] = _content(canonical[_CONTENT])
    if type(canonical[_TIMESTAMP]) is not float or not math.isfinite(canonical[_TIMESTAMP]):
        canonical[_TIMESTAMP] = _moment(canonical[_TIMESTAMP])
    for place in _MESSAGE_TEXTS:
        value = canonical[place]
        if value is not None and not (type(value) is str and value.isascii() and value.isprintable()):
            canonical[place] = canonical_text(value)
    for place in _MESSAGE_NUMBERS:
        if canonical[place] is not None and type(canonical[place]) is not int:
            canonical[place] = _number(canonical[place])
    for place, default in _MESSAGE_DEFAULTS:
        if canonical[place] is None:
            canonical[place] = default
    return Message(canonical[_ID], canonical[_SESSION_ID], canonical[_UID], canonical[_ACTIVE], tuple(canonical))


def canonical_usage_event(values: Sequence[Any]) -> Values:
    """Return a usage event, given in the order of `EVENT_COLUMNS`, in canonical form."""
    canonical = {name: _canonical_value(name, value) for name, value in zip(EVENT_COLUMNS, values, strict=True)}
    for name in COUNTERS:
        canonical[name] = canonical[name] or 0
    return tuple(canonical.values())


def count_tools(tool_calls: Iterable[Any]) -> Counter[str]:
    """Return how often each tool is called in stored tool calls."""
    tools: Counter[str] = Counter()
    for stored in tool_calls:
        try:
            tools.update(tool_names(json.loads(stored)))
        except (TypeError, ValueError):
            continue  # the names of the tools are unknown
    return tools


def _canonical_value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in NUMBERS:
        return _number(value)
    return _moment(value) if name in MOMENTS else canonical_text(value)


def canonical_text(value: Any) -> str:
    """Return a value of a text column in canonical form."""
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
        return encode_content(content) if isinstance(content, list | dict) else canonical_text(value)
    return canonical_text(value)


def _moment(value: Any) -> float | None:
    try:
        moment = float(value)
    except (TypeError, ValueError):
        return None
    # Not every engine distinguishes -0.0 from 0.0.
    return moment + 0.0 if math.isfinite(moment) else None


def _number(value: Any) -> int | None:
    if type(value) is int:
        return value
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
