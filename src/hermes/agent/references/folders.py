"""Lists the folder of a reference as a tree."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.agent.references.access import is_protected, require_place
from hermes.agent.references.git.repository import is_inside
from hermes.agent.references.listing import FileList, list_project, walk
from hermes.agent.references.texts import Block, NotAttached
from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.tools.context import ToolContext
from hermes.phrases import plural

MAX_ENTRIES = 200
_INDENT = "  "


def read_folder_block(context: ToolContext, path: str) -> Block:
    """Return the files of a folder with their sizes; raise `NotAttached` with a plain reason if there is none."""
    place = require_place(context, path)
    if not place.real.is_dir():
        raise NotAttached("it is not a directory; use @file:")
    found = _files_in(context, place.real)
    named = (each for each in found.paths[:MAX_ENTRIES] if is_inside(place.real / each, place.real))
    listed = [each for each in named if os.path.lexists(place.real / each)]
    shown = [each for each in listed if is_protected(context, str(place.real / each)) is None]
    lines = list(_tree(place.real, shown))
    if len(listed) > len(shown):
        lines.append(f"[{plural(len(listed) - len(shown), 'protected file')} not shown]")
    if len(found.paths) > MAX_ENTRIES or not found.is_complete:
        more = f"{len(found.paths) - MAX_ENTRIES} " if found.is_complete else ""
        lines.append(f"[... {more}more files]")
    label = plural(len(shown), "file") if shown else "no files"
    return Block(label, "\n".join(lines) or "(empty)")


def _files_in(context: ToolContext, folder: Path) -> FileList:
    """Return the files of a folder; in the session's directory those that git ignores are left out."""
    root = context.directory.root
    if not folder.is_relative_to(root):
        return walk(folder)
    listed = list_project(context)
    prefix = "" if folder == root else f"{folder.relative_to(root).as_posix()}/"
    inside = tuple(each.removeprefix(prefix) for each in listed.paths if each.startswith(prefix))
    # An ignored folder that the user names is listed all the same.
    return FileList(inside, listed.is_complete) if inside or not prefix else walk(folder)


def _tree(folder: Path, paths: Sequence[str]) -> Iterator[str]:
    """Yield one line for each directory and each file, indented by its depth."""
    shown: list[str] = []
    for path in paths:
        *directories, name = path.split("/")
        common = 0
        while common < min(len(shown), len(directories)) and shown[common] == directories[common]:
            common += 1
        for depth in range(common, len(directories)):
            yield f"{_INDENT * depth}{make_path_visible(directories[depth])}/"
        shown = directories
        yield f"{_INDENT * len(directories)}{make_path_visible(name)}{_size(folder / path)}"


def _size(path: Path) -> str:
    try:
        status = path.lstat()
    except OSError:
        return ""
    return "  (link)" if path.is_symlink() else f"  {plural(status.st_size, 'byte')}"
