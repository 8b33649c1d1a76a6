"""Imported sessions: how they are marked, and when they become the user's own.

A file cannot be trusted, so its sessions are marked with its name. Until this program has stored a message in one of
them, its directory, its model and its system prompt are stored but never used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes.state.sessions.lineage.kinds import ChildKind

RESUMED = "_resumed_here"
"""The entry of model_config that records that this program continued the session; an import removes it."""


def is_foreign(row: Mapping[str, Any]) -> bool:
    """Whether a session was imported and never continued here."""
    return row["imported_from"] is not None and RESUMED not in _entries(row["model_config"])


def is_own(row: Mapping[str, Any]) -> bool:
    """Whether a session was created or continued here."""
    return not is_foreign(row)


def with_mark(model_config: str | None) -> dict[str, Any]:
    """Return a session's model_config with the entry that this program continued it."""
    return {**_entries(model_config), RESUMED: True}


def without_mark(model_config: str | None) -> str | None:
    """Return a session's model_config without that entry."""
    entries = _entries(model_config)
    if RESUMED not in entries:
        return model_config
    del entries[RESUMED]
    return json.dumps(entries) if entries else None


def may_link(child_file: str | None, parent: Mapping[str, Any], kind: str | None) -> bool:
    """Whether an imported session may become a child of another session.

    It never becomes the child of the user's own session, and continues only sessions of the same file, because a
    continuation replaces what it continues.
    """
    if child_file is None:
        return True
    return not is_own(parent) and (kind != ChildKind.COMPRESSION or parent["imported_from"] == child_file)


def _entries(model_config: str | None) -> dict[str, Any]:
    if not isinstance(model_config, str) or not model_config.lstrip().startswith("{"):
        return {}
    try:
        entries = json.loads(model_config)
    except (ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}
