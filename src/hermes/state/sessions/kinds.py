"""Pure rules about sessions: what kind of child one is, and whether it is listed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum

from hermes.errors import InvalidValue


class ChildKind(StrEnum):
    """Why a session has a parent."""

    COMPRESSION = "compression"
    BRANCH = "branch"
    DELEGATE = "delegate"
    RESET = "reset"
    IMPORT = "import"


LISTED_KINDS = (ChildKind.BRANCH, ChildKind.RESET, ChildKind.IMPORT)

ORPHAN_GUESS = "__orphaned__"
"""A marker that an older program put on chats it only guessed to be delegates; it proves nothing."""


def kind_from_markers(model_config: str | None, *, is_old: bool = False) -> ChildKind | None:
    """The kind that a caller, or with `is_old` an older program, noted inside a session's model_config."""
    if not isinstance(model_config, str) or "_from" not in model_config:
        return None
    try:
        config = json.loads(model_config)
    except (ValueError, RecursionError):
        return None
    if not isinstance(config, dict):
        return None
    if config.get("_branched_from") is not None:
        return ChildKind.BRANCH
    delegate_from = config.get("_delegate_from")
    if delegate_from is None or (is_old and delegate_from == ORPHAN_GUESS):
        return None
    return ChildKind.DELEGATE


def kind_from_parent(end_reason: str | None) -> ChildKind | None:
    """The kind that a parent's end suggests."""
    return {
        "compression": ChildKind.COMPRESSION,
        "branched": ChildKind.BRANCH,
        "session_reset": ChildKind.RESET,
    }.get(end_reason or "")


def parse_kind(kind: str | None) -> ChildKind | None:
    """A kind as a caller names it."""
    try:
        return None if kind is None else ChildKind(kind)
    except ValueError:
        known = ", ".join(ChildKind)
        raise InvalidValue(f"child_kind must be one of {known}, not {kind!r}") from None


def is_listed(parent_session_id: str | None, kind: str | None) -> bool:
    """Whether a session stands in lists by itself."""
    if kind == ChildKind.DELEGATE:
        return False
    return parent_session_id is None or kind in LISTED_KINDS


def first_of_chain(parents: dict[str, str], session_id: str) -> str:
    """Where a chain of sessions begins, given the parent of each that has one."""
    first, seen = session_id, {session_id}
    while (parent := parents.get(first)) is not None and parent not in seen:
        first = parent
        seen.add(first)
    return first


def roots_of_chains(parents: Mapping[str, str]) -> dict[str, str]:
    """Where the chain of each session begins, given the parent of each that has one; each step is taken once."""
    roots: dict[str, str] = {}
    for session_id in {**parents, **dict.fromkeys(parents.values(), "")}:
        path: list[str] = []
        seen: set[str] = set()
        current = session_id
        while current not in roots and current not in seen and current in parents:
            path.append(current)
            seen.add(current)
            current = parents[current]
        root = roots.get(current, current)
        roots.update(dict.fromkeys([*path, session_id], root))
    return roots
