"""The files of a project: what git lists if there is a repository, else what a walk finds; both are limited."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hermes.agent.references.git.changes import open_view
from hermes.agent.references.git.process import find_git
from hermes.agent.references.git.repository import has_odd_name
from hermes.agent.references.texts import NotAttached
from hermes.agent.tools.context import ToolContext

MAX_FILES = 20_000
WALK_S = 1.0
GIT_S = 2.0

_MAX_LIST_BYTES = 4 * 1024 * 1024
_PASSED_OVER = frozenset(("node_modules", "__pycache__", "target", "venv"))
"""Directories that a walk leaves out, in addition to hidden ones."""


@dataclass(frozen=True, slots=True)
class FileList:
    """Paths of files below a directory, sorted, with `/` between their parts."""

    paths: tuple[str, ...]
    is_complete: bool = True


def list_project(context: ToolContext, *, seconds: float = GIT_S) -> FileList:
    """Return the files below the session's directory; files that git ignores are left out."""
    root = context.directory.root
    try:
        with open_view(context, find_git(context, seconds)) as (view, _):
            output = view.run(["ls-files", "-z", "--cached", "--others", "--exclude-standard"], _MAX_LIST_BYTES)
    except NotAttached:
        return walk(root, min(seconds, WALK_S))
    names = output.data.split(b"\0")
    if output.is_cut:
        names.pop()
    plain = {name for name in names if name and not name.endswith(b"/") and not has_odd_name(name + b"\0")}
    paths = sorted(map(os.fsdecode, plain))
    return FileList(tuple(paths[:MAX_FILES]), is_complete=not output.is_cut and len(paths) <= MAX_FILES)


def walk(root: Path, seconds: float = WALK_S) -> FileList:
    """Return the files below a directory without links, hidden ones left out, as many as the time allows."""
    deadline = time.monotonic() + seconds
    found: list[str] = []
    for path in _walk(root, ""):
        if len(found) == MAX_FILES or time.monotonic() > deadline:
            return FileList(tuple(sorted(found)), is_complete=False)
        found.append(path)
    return FileList(tuple(sorted(found)))


def _walk(directory: Path, prefix: str) -> Iterator[str]:
    """Yield files, those of a directory before those of its subdirectories."""
    waiting = [(directory, prefix)]
    while waiting:
        directory, prefix = waiting.pop(0)
        try:
            with os.scandir(directory) as entries:
                # One more than the limit shows that there are more.
                ordered = sorted(islice(entries, MAX_FILES + 1), key=lambda each: each.name)
        except OSError:
            continue  # it cannot be read, or it was deleted
        for each in ordered:
            if each.name.startswith("."):
                continue
            if each.is_dir(follow_symlinks=False):
                if each.name not in _PASSED_OVER:
                    waiting.append((Path(each.path), f"{prefix}{each.name}/"))
            else:
                yield f"{prefix}{each.name}"
