"""Chooses completions for a reference that is being typed; nothing here reads a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from typing import Literal

from hermes.agent.references.parse import write_reference
from hermes.agent.safety.protected_names import has_secret_name

FORMS = ("@file:", "@folder:", "@diff", "@staged", "@git:", "@url:")
MAX_SUGGESTIONS = 30

_TYPED = re.compile(r"""(?<![\w/@\\])@(?:(?:file|folder):)?(?:(?P<quote>["'`])[^\n"'`]*|[^\s"'`]*)\Z""")
_MAX_CHARACTERS = 300
"""A longer text is no name that is being typed."""


def typed_reference(text: str) -> str:
    """Return the beginning of a reference at the end of a text; empty if there is none."""
    found = _TYPED.search(text[-_MAX_CHARACTERS:])
    return found[0] if found else ""


def suggest_references(typed: str, files: Callable[[], Sequence[str]]) -> list[str]:
    """Return references that fit what was typed, the best first; `files` returns the paths of the project."""
    kind, colon, part = typed.partition(":")
    part = part.lstrip("\"'`")
    if colon and kind == "@folder":
        return _written("folder", part, _directories(files()))
    if colon:
        return _written("file", part, files()) if kind == "@file" else []
    forms = [each for each in FORMS if each.startswith(typed)]
    name = typed.removeprefix("@")
    return [*forms, *(_written("file", name, files()) if name else [])][:MAX_SUGGESTIONS]


def rank(part: str, path: str) -> int | None:
    """Return how well a path fits a case-folded part of it, 0 is best; None if it does not fit."""
    folded = path.casefold()
    name = folded.rpartition("/")[2]
    if folded.startswith(part):
        return 0
    if name.startswith(part):
        return 1
    if part in name:
        return 2
    if part in folded:
        return 3
    return 4 if _has_in_order(part, name) else 5 if _has_in_order(part, folded) else None


def _has_in_order(part: str, text: str) -> bool:
    """Whether a text has the characters of a part in their order."""
    at = -1
    for char in part:
        at = text.find(char, at + 1)
        if at < 0:
            return False
    return True


def _written(kind: Literal["file", "folder"], part: str, paths: Iterable[str]) -> list[str]:
    """Return references to the paths that fit best."""
    folded = part.casefold()
    fitting = (
        (place, len(path), path)
        for path in paths
        if (place := rank(folded, path)) is not None and not has_secret_name(f"/{path.casefold()}")
    )
    best = nsmallest(MAX_SUGGESTIONS, fitting)
    return [written for _, _, path in best if (written := write_reference(kind, path)) is not None]


def _directories(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found
