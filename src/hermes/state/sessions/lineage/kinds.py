"""Pure rules about sessions: what kind of child one is, and whether it is listed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
"""A marker that an older program set on chats that it only guessed to be delegates."""


def kind_from_markers(model_config: str | None, *, is_old: bool = False) -> ChildKind | None:
    """Return the kind that a caller, or with `is_old` an older program, stored in a session's model_config."""
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
    """Return the kind that follows from the parent's end reason."""
    return {
        "compression": ChildKind.COMPRESSION,
        "branched": ChildKind.BRANCH,
        "session_reset": ChildKind.RESET,
    }.get(end_reason or "")


def parse_kind(kind: str | None) -> ChildKind | None:
    """Check the kind that a caller passes."""
    try:
        return None if kind is None else ChildKind(kind)
    except ValueError:
        known = ", ".join(ChildKind)
        raise InvalidValue(f"child_kind must be one of {known}, not {kind!r}") from None


def is_listed(parent_session_id: str | None, kind: str | None) -> bool:
    """Whether a session is an entry of its own in lists."""
    if kind == ChildKind.DELEGATE:
        return False
    return parent_session_id is None or kind in LISTED_KINDS


def follow(links: Mapping[str, str], session_id: str) -> list[str]:
    """Return a session and all that the links lead to, in order; a cycle is followed once."""
    line = {session_id: None}
    current = session_id
    while (following := links.get(current)) is not None and following not in line:
        line[following] = None
        current = following
    return list(line)


def descent(first: str, children: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a session and all its descendants, generation by generation; a cycle is followed once."""
    found = {first: None}
    generation = [first]
    while generation:
        below = dict.fromkeys(child for each in generation for child in children.get(each, ()) if child not in found)
        found |= below
        generation = list(below)
    return list(found)


def first_of_chain(parents: Mapping[str, str], session_id: str) -> str:
    """Return the root of a session's chain, from the parent of each session that has one."""
    return follow(parents, session_id)[-1]


def roots_of_chains(parents: Mapping[str, str]) -> dict[str, str]:
    """Return the root of each session's chain, from the parent of each session that has one, in linear time."""
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
