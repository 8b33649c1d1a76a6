"""Rules for sessions that come from a file: what they may bring along, and when they become the user's own.

A file can say anything. Its sessions are marked with its name. Until a message was stored in one of them by this
program, its directory, its model and its system prompt are only on record and never used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hermes.state.kinds import ChildKind

if TYPE_CHECKING:
    from hermes.state.incoming import Incoming

RESUMED = "_resumed_here"
"""The entry in a session's model_config that says that this program continued it; no file can bring it along."""

NAMELESS = "import_session"
"""What stands for the file where a caller imports a dict and names none."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the sessions of a file may do here."""

    file: str
    """The name of the file, which marks its sessions."""
    keeps_owners: bool = False
    """Whether they belong to the owners that the file names; otherwise they are the terminal's."""
    adds_to_own: bool = False
    """Whether they may add messages to sessions that were made here, and be linked to them."""


def received(session: Incoming, terms: Terms, now: float) -> Incoming:
    """Return a session as a file may bring it in: marked, no later than now, and of no owner unless that is wished."""
    values = {
        **session.values,
        "started_at": min(session.values["started_at"], now),
        "model_config": _without_mark(session.values["model_config"]),
        "imported_from": terms.file,
    }
    if not terms.keeps_owners:
        values["owner"] = None
    ended_at = session.carried.get("ended_at")
    carried = session.carried if ended_at is None else {**session.carried, "ended_at": min(ended_at, now)}
    return replace(
        session,
        values=values,
        carried=carried,
        opening=[_no_later(each, now) for each in session.opening],
        usage=[_no_later(each, now) for each in session.usage],
        rewinds=[_no_later(each, now) for each in session.rewinds],
        latest=now,
        adds_to_own=terms.adds_to_own,
    )


def is_foreign(row: Mapping[str, Any]) -> bool:
    """Whether a session came from a file, and nothing was said in it here."""
    return row["imported_from"] is not None and RESUMED not in _entries(row["model_config"])


def with_mark(model_config: str | None) -> dict[str, Any]:
    """Return a session's model_config with the entry that says that this program continued it."""
    return {**_entries(model_config), RESUMED: True}


def may_link(child_file: str | None, parent: Mapping[str, Any], kind: str | None) -> bool:
    """Whether a session of a file may become a child of another session.

    It never becomes the child of one that is the user's own, and continues only sessions of the same file: a
    continuation takes the place of what it continues.
    """
    if child_file is None:
        return True
    return not is_own(parent) and (kind != ChildKind.COMPRESSION or parent["imported_from"] == child_file)


def is_own(row: Mapping[str, Any]) -> bool:
    """Whether a session was made here, or was continued here."""
    return not is_foreign(row)


def _without_mark(model_config: str | None) -> str | None:
    entries = _entries(model_config)
    if RESUMED not in entries:
        return model_config
    del entries[RESUMED]
    return json.dumps(entries) if entries else None


def _entries(model_config: str | None) -> dict[str, Any]:
    if not isinstance(model_config, str) or not model_config.lstrip().startswith("{"):
        return {}
    try:
        entries = json.loads(model_config)
    except (ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _no_later(event: Mapping[str, Any], now: float) -> dict[str, Any]:
    return {**event, "at": min(event["at"], now)}
