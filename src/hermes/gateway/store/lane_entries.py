"""Entries from rows of lanes, and the columns that an entry sets."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from hermes.gateway.entry import COUNTERS, FLAGS, SessionEntry
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.state.lanes.types import LaneFields, LaneRow

IMPORTED_COUNTERS = "counters"
"""The key in a lane's `extra` with the counters of `sessions.json`; they count until the session itself has more."""

MODEL = "model"
"""The key in a lane's `extra` with the model that a user has chosen."""

_SAME = (*FLAGS, "chat_type", "display_name", "resume_reason", "auto_reset_reason", "last_prompt_tokens")


def chosen_model(row: LaneRow | None) -> str | None:
    """Return the model that a user has chosen for a lane; None is the configured one."""
    name = None if row is None else row["extra"].get(MODEL)
    return name if isinstance(name, str) and name else None


def local_time(moment: float) -> datetime:
    """Return a time as entries have it: local and without a zone."""
    return datetime.fromtimestamp(moment)  # noqa: DTZ006


def entry_from_row(row: LaneRow) -> SessionEntry:
    """Return the entry of a lane; its counters are those of the session."""
    marked = row["last_resume_marked_at"]
    entry = SessionEntry(
        session_key=row["session_key"],
        session_id=row["session_id"],
        created_at=local_time(row["created_at"]),
        updated_at=local_time(row["updated_at"]),
        origin=SessionSource.from_stored(row["origin"]) if row["origin"] else None,
        platform=Platform.from_stored(row["platform"]) if row["platform"] else None,
        estimated_cost_usd=row["estimated_cost_usd"] or 0.0,
        cost_status=row["cost_status"] or "unknown",
        last_resume_marked_at=None if marked is None else local_time(marked),
    )
    columns = cast("dict[str, Any]", row)
    for name in _SAME:
        setattr(entry, name, columns[name])
    imported = row["extra"].get(IMPORTED_COUNTERS, {})
    for name in COUNTERS[:-1]:
        setattr(entry, name, max(columns[name], imported.get(name, 0)))
    entry.total_tokens = max(entry.input_tokens + entry.output_tokens, imported.get("total_tokens", 0))
    return entry


def fields_from_entry(entry: SessionEntry) -> LaneFields:
    """Return the columns that an entry sets; its counters belong to the session."""
    marked = entry.last_resume_marked_at
    fields: dict[str, Any] = {name: getattr(entry, name) for name in _SAME}
    fields |= {
        "created_at": entry.created_at.timestamp(),
        "updated_at": entry.updated_at.timestamp(),
        "origin": entry.origin.to_dict() if entry.origin else None,
        "platform": entry.platform.value if entry.platform else None,
        "last_resume_marked_at": marked.timestamp() if marked else None,
    }
    return cast("LaneFields", fields)


def changed_fields(entry: SessionEntry, row: LaneRow) -> LaneFields:
    """Return the columns in which an entry differs from its lane."""
    stored, wanted = fields_from_entry(entry_from_row(row)), fields_from_entry(entry)
    return cast("LaneFields", {name: value for name, value in wanted.items() if value != stored.get(name)})
