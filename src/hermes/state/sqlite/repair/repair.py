"""Repairing a damaged database: every readable row goes into a new file, which then replaces the old one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from hermes.errors import Conflict, NotFound
from hermes.state.engine import Report
from hermes.state.messages.spool import Spool
from hermes.state.sqlite.amounts import checked_timeout
from hermes.state.sqlite.backup.backup import directory_lock
from hermes.state.sqlite.files.names import beside, real_file, require_file
from hermes.state.sqlite.files.open_by import refuse_foreign_programs
from hermes.state.sqlite.files.swap import writer_lock_held
from hermes.state.sqlite.repair.salvage import Salvaged
from hermes.state.sqlite.repair.working_copy import Examination, WorkingCopy

TIMEOUT_S = 60.0


class FileCondition(StrEnum):
    """The condition of a database."""

    HEALTHY = "healthy"
    EMPTY = "empty"
    """The file is empty, so nothing can be damaged."""
    DAMAGED = "damaged"
    REPAIRED = "repaired"


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The defects that were found, and what was done."""

    path: Path
    condition: FileCondition
    damage: tuple[str, ...] = ()
    """Which parts are damaged: header, schema, data, log, index, counts."""
    problems: tuple[str, ...] = ()
    """Every defect, as a sentence."""
    salvaged: Salvaged | None = None
    """What was, or would be, saved; None if nothing is wrong."""
    kept_as: Path | None = None
    """The path of the damaged file, which is kept."""
    spooled: int = 0
    """How many messages are in the spool, to be stored when the store is opened next."""


Confirm = Callable[[RepairResult], bool]
"""Gets the result of the check, and returns whether to repair."""


def check(database: Path, *, timeout_s: float = TIMEOUT_S, report: Report | None = None) -> RepairResult:
    """Return what is wrong with a database and what could be saved; nothing is changed.

    The caller must not have the database open. Other processes can write to it, except while it is copied.
    """
    timeout_s = checked_timeout("timeout_s", timeout_s)
    file = _require_file(database)
    with _working_directory(file) as place:
        copy = WorkingCopy(file, place, report)
        try:
            with writer_lock_held(file, timeout_s) if place == file.parent else nullcontext():
                copy.copy()
            return _result(database, copy.examine())
        finally:
            copy.discard()


def repair(
    database: Path, *, confirm: Confirm | None = None, timeout_s: float = TIMEOUT_S, report: Report | None = None
) -> RepairResult:
    """Copy every readable row of a damaged database into a new file, verify that file, and replace the old one.

    The caller must not have the database open; other processes of this program notice the new file on their own. While
    `confirm` waits for the user no process has to wait, and rows written meanwhile are saved too. A process that dies
    in here leaves either the old database or the repaired one.
    """
    timeout_s = checked_timeout("timeout_s", timeout_s)
    file = _require_file(database)
    with directory_lock(file.parent) as is_certain:
        copy = WorkingCopy(file, file.parent, report)
        try:
            with writer_lock_held(file, timeout_s):
                refuse_foreign_programs(file)
                if is_certain:
                    copy.remove_leftovers()
                result = _copy_and_salvage(database, copy)
                if result.condition is not FileCondition.DAMAGED:
                    return result
                if confirm is None:
                    return _swap(result, copy)
            if not confirm(result):
                return result
            with writer_lock_held(file, timeout_s):
                refuse_foreign_programs(file)
                if copy.was_written():
                    copy.discard()
                    result = _require_still_agreed(result, _copy_and_salvage(database, copy))
                return _swap(result, copy)
        finally:
            copy.discard()


def _copy_and_salvage(database: Path, copy: WorkingCopy) -> RepairResult:
    copy.copy()
    examined = copy.examine()
    if examined.salvaged is not None:
        copy.complete(examined.salvaged)
    return _result(database, examined)


def _result(database: Path, examined: Examination) -> RepairResult:
    condition = FileCondition.EMPTY if examined.is_empty else FileCondition.HEALTHY
    if examined.salvaged is not None:
        condition = FileCondition.DAMAGED
    return RepairResult(
        database,
        condition,
        examined.damage,
        examined.problems,
        examined.salvaged,
        spooled=Spool(beside(real_file(database), ".spool")).count(),
    )


def _require_still_agreed(before: RepairResult, now: RepairResult) -> RepairResult:
    """Return the new result; raise if more would be lost than the user agreed to."""
    assert before.salvaged is not None
    if now.salvaged is None or now.salvaged.lost_messages > before.salvaged.lost_messages:
        raise Conflict(f"{now.path} was changed meanwhile", hint="run the repair again; nothing was repaired")
    return now


def _swap(result: RepairResult, copy: WorkingCopy) -> RepairResult:
    return replace(result, condition=FileCondition.REPAIRED, kept_as=copy.swap())


def _require_file(database: Path) -> Path:
    """Return the real path of the file, which must exist."""
    missing = f"there is no session database at {database}"
    require_file(database, NotFound(missing, hint="check HERMES_HOME and sessiondb.path"))
    return real_file(database)


@contextmanager
def _working_directory(file: Path) -> Iterator[Path]:
    """Yield a directory for copies; if the file's own is read-only, no process writes to it, so any directory works."""
    if os.access(file.parent, os.W_OK):
        with directory_lock(file.parent):
            yield file.parent
    else:
        with TemporaryDirectory(prefix="hermes-") as place:
            yield Path(place)
