"""The text of lanes in `sessions.json`, made directly from their rows: a file has thousands of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from hermes.gateway.entry import COUNTERS
from hermes.gateway.store.lane_entries import IMPORTED_COUNTERS
from hermes.state.lanes.types import LaneRow

_FORM = """\
  %s: {
    "session_key": %s,
    "session_id": %s,
    "created_at": "%s",
    "updated_at": "%s",
    "display_name": %s,
    "platform": %s,
    "chat_type": %s,
    "input_tokens": %d,
    "output_tokens": %d,
    "cache_read_tokens": %d,
    "cache_write_tokens": %d,
    "total_tokens": %d,
    "last_prompt_tokens": %d,
    "estimated_cost_usd": %s,
    "cost_status": %s,
    "expiry_finalized": %s,
    "suspended": %s,
    "resume_pending": %s,
    "resume_reason": %s,
    "last_resume_marked_at": %s,
    "is_fresh_reset": %s,
    "was_auto_reset": %s,
    "auto_reset_reason": %s,
    "reset_had_activity": %s%s
  }"""
_ORIGIN = """,
    "origin": {
%s
    }"""


def format_row(row: LaneRow) -> bytes:
    """Return the text of a lane: that of the entry's `to_dict`."""
    try:
        return _format(row, encode_basestring).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which a platform has sent
        return _format(row, encode_basestring_ascii).encode()


def _format(row: LaneRow, quote: Callable[[str], str]) -> str:
    key, marked = quote(row["session_key"]), row["last_resume_marked_at"]
    return _FORM % (
        key,
        key,
        quote(row["session_id"]),
        _iso(row["created_at"]),
        _iso(row["updated_at"]),
        _text(row["display_name"], quote),
        _text(row["platform"], quote),
        quote(row["chat_type"]),
        *_counters(row),
        row["last_prompt_tokens"],
        json.dumps(row["estimated_cost_usd"] or 0.0),
        quote(row["cost_status"] or "unknown"),
        _flag(row["expiry_finalized"]),
        _flag(row["suspended"]),
        _flag(row["resume_pending"]),
        _text(row["resume_reason"], quote),
        "null" if marked is None else f'"{_iso(marked)}"',
        _flag(row["is_fresh_reset"]),
        _flag(row["was_auto_reset"]),
        _text(row["auto_reset_reason"], quote),
        _flag(row["reset_had_activity"]),
        _origin(row["origin"], quote) if row["origin"] else "",
    )


def _origin(origin: dict[str, Any], quote: Callable[[str], str]) -> str:
    fields = [
        f'      "{name}": {quote(value) if isinstance(value, str) else json.dumps(value)}'
        for name, value in origin.items()
    ]
    return _ORIGIN % ",\n".join(fields)


def _counters(row: LaneRow) -> tuple[int, ...]:
    counts = (row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"])
    imported = row["extra"].get(IMPORTED_COUNTERS) if row["extra"] else None
    if imported:
        counts = tuple(max(count, imported.get(name, 0)) for name, count in zip(COUNTERS, counts, strict=False))
        return *counts, max(counts[0] + counts[1], imported.get("total_tokens", 0))
    return *counts, counts[0] + counts[1]


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment).isoformat()  # noqa: DTZ006


def _text(value: str | None, quote: Callable[[str], str]) -> str:
    return "null" if value is None else quote(value)


def _flag(value: bool) -> str:
    return "true" if value else "false"
