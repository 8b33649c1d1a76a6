"""Rows of `lanes`: how their columns are checked, stored and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hermes.errors import InvalidValue
from hermes.state import json_text
from hermes.state.engine import Reading, Values
from hermes.state.lanes.identity import decode_payload, encode_payload, optional_payload
from hermes.state.rows import decode_text, optional_number, optional_text, require_flag, require_integer, require_number

if TYPE_CHECKING:
    from hermes.state.lanes.types import LaneFields, LaneRow

TIMES = ("created_at", "updated_at")
TEXTS = ("platform", "display_name", "resume_reason", "auto_reset_reason")
FLAGS = (
    *("suspended", "resume_pending", "is_fresh_reset", "was_auto_reset", "reset_had_activity", "expiry_finalized"),
)
COUNTS = ("last_prompt_tokens", "expiry_failures", "restart_count")
DESCRIPTION = ("platform", "chat_type", "display_name", "origin", "extra")
"""The columns that describe the chat; the others describe its present session."""
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys((*FLAGS, *COUNTS), 0),
    **dict.fromkeys(("resume_reason", "last_resume_marked_at", "auto_reset_reason")),
}
"""The values of the columns about a session when the session is new."""
COLUMNS = (
    *("created_at", "updated_at", "platform", "chat_type", "display_name", "last_prompt_tokens", "suspended"),
    *("resume_pending", "resume_reason", "last_resume_marked_at", "is_fresh_reset", "was_auto_reset"),
    *("auto_reset_reason", "reset_had_activity", "expiry_finalized", "expiry_failures", "restart_count", "origin"),
    *("extra",),
)
"""The columns that callers set."""
SESSION = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "estimated_cost_usd", "cost_status"),
    *("message_count", "owner", "ended_at"),
)
"""The columns of the session that a row shows."""

_NAMES = ("id", "session_key", "session_id", *COLUMNS, *SESSION)
SELECT = (
    f"SELECT l.id, l.session_key, l.session_id, {', '.join(f'l.{name}' for name in COLUMNS)},"
    f" {', '.join(f's.{name}' for name in SESSION)} FROM lanes l JOIN sessions s ON s.id = l.session_id"
)
_FLAG_INDEXES = tuple(_NAMES.index(name) for name in FLAGS)
_AMOUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def encode_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return checked values of columns as they are stored."""
    stored: dict[str, Any] = {}
    for name, value in fields.items():
        if name in FLAGS:
            stored[name] = require_flag(value, name)
        elif name in COUNTS:
            stored[name] = require_integer(value, name)
        elif name in TIMES:
            stored[name] = require_number(value, name)
        elif name in TEXTS:
            stored[name] = optional_text(value, name)
        elif name == "last_resume_marked_at":
            stored[name] = optional_number(value, name)
        elif name == "chat_type":
            stored[name] = _required_text(value, name)
        elif name == "origin":
            stored[name] = optional_payload(value, name)
        elif name == "extra":
            stored[name] = encode_payload(value, name) if value else None
        else:
            raise InvalidValue(f"a lane has no field {name!r}")
    return stored


def touched_fields(now: float) -> LaneFields:
    """Return the columns that activity sets: a session that is used again has not ended yet."""
    return {"updated_at": now, "expiry_finalized": False}


def lane_row(values: Values) -> LaneRow:
    """Return a lane from the columns of `SELECT`."""
    row: dict[str, Any] = dict(zip(_NAMES, values, strict=True))
    lane_id, key = row.pop("id"), row["session_key"]
    row["session_key"] = lane_id if key is None else decode_text(key)
    for name in FLAGS:
        row[name] = bool(row[name])
    for name in ("platform", "chat_type", "display_name", "resume_reason", "auto_reset_reason", "cost_status"):
        row[name] = decode_text(row[name])
    for name in _AMOUNTS:
        row[name] = row[name] or 0
    row["origin"] = decode_payload(row["origin"])
    row["extra"] = decode_payload(row["extra"]) or {}
    row["cursor"] = json_text.dumps_ascii([row["updated_at"], lane_id])
    return cast("LaneRow", row)


def read_lane(tx: Reading, lane_id: str) -> LaneRow | None:
    """Return a lane by its short form."""
    row = tx.row(f"{SELECT} WHERE l.id = :id", id=lane_id)
    return None if row is None else lane_row(row)


def changed_row(row: LaneRow, lane_id: str, fields: Mapping[str, Any]) -> LaneRow:
    """Return a row with other values of its own columns."""
    changed = {**row, **fields}
    if "updated_at" in fields:
        changed["cursor"] = json_text.dumps_ascii([changed["updated_at"], lane_id])
    if not changed["extra"]:
        changed["extra"] = {}
    return cast("LaneRow", changed)


def assignments(columns: Sequence[str]) -> str:
    """Return `name = :name, ...` for an UPDATE."""
    return ", ".join(f"{name} = :{name}" for name in columns)


def parse_cursor(cursor: str | None) -> tuple[float, str] | None:
    """Return the time and the lane that a cursor names."""
    if cursor is None:
        return None
    try:
        moment, lane_id = json_text.loads(cursor)
        return require_number(moment, "after"), _required_text(lane_id, "after")
    except (TypeError, ValueError):
        raise InvalidValue(f"after is not the cursor of a lane: {cursor!r}") from None


def _required_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"{name} must be a string, not {type(value).__name__}")
    return value
