"""Puts back the former contents of files when the user undoes the turns that changed them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.agent.safety.opening import open_directory
from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.tools.editing.file_change import FileChange, make_change, read_state
from hermes.agent.tools.editing.journal import ChangeJournal, RecordedChange, checksum, marked_change
from hermes.errors import HermesError
from hermes.state.rows import AnyRow, flatten_text

if TYPE_CHECKING:
    from hermes.agent.open_session import OpenSession

TOOLS = ("edit_file", "write_file")
MAX_ANCESTORS = 100
"""How many earlier sessions of a conversation may have made a change that is undone."""


@dataclass(frozen=True, slots=True)
class UndoneChange:
    """What became of one change of a file."""

    path: Path
    problem: str = ""
    """Why the file was left as it is; empty if it has its former content."""
    is_removed: bool = False
    """Whether the file was removed, because the change had made it."""

    def __str__(self) -> str:
        shown = make_path_visible(self.path)
        if self.problem:
            return f"{shown} stays as it is: {self.problem}"
        return f"{shown} is removed" if self.is_removed else f"{shown} has its former content"


def undo_changes(session: OpenSession, rows: Iterable[AnyRow]) -> list[UndoneChange]:
    """Undo the changes of files that these messages report, the last one first; return what became of them."""
    marked = {
        change_id
        for row in rows
        if row["role"] == "tool" and row["tool_name"] in TOOLS
        if (change_id := marked_change(flatten_text(row["content"]))) is not None
    }
    if not marked:
        return []
    found = ChangeJournal(session.agent.home).find(_session_ids(session), marked)
    return [_undo(each) for each in found]


def _session_ids(session: OpenSession) -> list[str]:
    """Return the session and those that it continues or was copied from."""
    ids: list[str] = []
    each: str | None = session.session_id
    while each is not None and each not in ids and len(ids) < MAX_ANCESTORS:
        ids.append(each)
        row = session.store.get_session(each)
        each = None if row is None else row["parent_session_id"]
    return ids


def _undo(change: RecordedChange) -> UndoneChange:
    try:
        found = read_state(change.path)
        if found is None:
            return UndoneChange(change.path, "it was removed meanwhile")
        if checksum(found.data) != change.after_sha256:
            return UndoneChange(change.path, "it has changed since")
        before = None if change.before is None else change.before.encode()
        make_change(FileChange(change.path, found, before))
    except HermesError as error:
        return UndoneChange(change.path, error.message)
    except OSError as error:
        return UndoneChange(change.path, error.strerror or type(error).__name__)
    if before is None:
        _remove_empty(change.new_directories)
    return UndoneChange(change.path, is_removed=before is None)


def _remove_empty(directories: Iterable[Path]) -> None:
    """Remove the directories that a change made, the innermost first, as long as they are empty."""
    for each in reversed(list(directories)):
        try:
            with open_directory(each.parent) as parent:
                os.rmdir(each.name, dir_fd=parent)
        except OSError:
            return
