"""Backups of a database: made while others write, checked before they count, and only so many of them kept."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hermes.errors import Conflict, InvalidValue, NotFound, StoreCorrupt, StoreUnavailable
from hermes.home import ensure_private_dir, sync_directory
from hermes.log import warn
from hermes.state.engine import Report
from hermes.state.sqlite.amounts import checked_count
from hermes.state.sqlite.checks.verify import DefectKind, Depth, Verdict, verify
from hermes.state.sqlite.files.checksum import SUFFIX, write_checksum
from hermes.state.sqlite.files.names import JOURNAL, LOG, SHARED_MEMORY, beside, real_file, remove
from hermes.state.sqlite.files.page_copy import copy_database, write_error

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: one backup at a time must do
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".partial"
STAMP = "%Y%m%d_%H%M%S"

_OWN_FILES = ("", LOG, SHARED_MEMORY, JOURNAL, ".lock", ".gate", ".spool", ".spool.unreadable")


class BackupResult(NamedTuple):
    """A new backup, and the old ones that had to go."""

    verdict: Verdict
    removed: list[Path]


def back_up(database: Path, target: Path, *, overwrite: bool = False, report: Report | None = None) -> Verdict:
    """Make a backup at `target`, where it is only once it is complete and has been found to be whole.

    Others read and write meanwhile; everything is in it that was stored before it began. Beside it lies its checksum.
    """
    target = real_file(target)
    try:
        _refuse_target(database, target, overwrite=overwrite)
    except OSError as exc:
        raise StoreUnavailable(f"{target} cannot be reached: {exc.strerror}") from exc
    with directory_lock(target.parent):
        return _write_backup(database, target, report)


def back_up_into(database: Path, directory: Path, keep: int, report: Report | None = None) -> BackupResult:
    """Make a backup under a name of its own, then remove the oldest of those that this has made, down to `keep`."""
    keep = checked_count("keep", keep)
    was_there = directory.is_dir()
    ensure_private_dir(directory)
    if not was_there:
        give_to_owner(directory, database)
    with directory_lock(directory) as is_certain:
        if is_certain:
            _remove_leftovers(database, directory)
        verdict = _write_backup(database, _next_name(database, directory), report)
        older = [each for each in backups_in(directory, database) if each != verdict.path]
        return BackupResult(verdict, [each for each in older[keep - 1 :] if _remove_backup(each)])


def backups_in(directory: Path, database: Path) -> list[Path]:
    """The backups of a database that `back_up_into` has made, the newest first."""
    form = re.compile(_name_pattern(database))
    found = []
    for each in directory.iterdir() if directory.is_dir() else ():
        if (named := form.fullmatch(each.name)) and each.is_file() and not each.is_symlink():
            found.append((named[2], int(named[3] or 1), each))
    return [path for *_, path in sorted(found, reverse=True)]


@contextmanager
def directory_lock(directory: Path) -> Iterator[bool]:
    """Keep others from making backups in a directory, so that what is half done there was left by somebody who died.

    Answers False where directories cannot be locked.
    """
    if fcntl is None:  # pragma: no cover
        yield False
        return
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        raise StoreUnavailable(f"{directory} cannot be used: {exc.strerror}") from exc
    try:
        yield _try_lock(fd, directory)
    finally:
        os.close(fd)


def give_to_owner(path: Path, database: Path) -> None:
    """Give what an administrator makes to the owner of the database."""
    if os.name == "posix" and os.geteuid() == 0 and database.exists():
        owner = database.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _try_lock(fd: int, directory: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Conflict(
            f"another process is making or restoring a backup in {directory}", hint="wait until it is done"
        ) from None
    except OSError:
        return False  # not every file system can do that
    return True


def _refuse_target(database: Path, target: Path, *, overwrite: bool) -> None:
    own = [beside(real_file(database), suffix) for suffix in _OWN_FILES]
    if target in own or (target.exists() and database.exists() and target.samefile(database)):
        raise InvalidValue(f"{target} belongs to the database itself", hint="name another file")
    if target.exists() and not target.is_file():
        raise InvalidValue(f"{target} is not a file", hint="name a file in a directory")
    if not target.parent.is_dir():
        raise NotFound(f"there is no directory {target.parent}", hint="make it first, or name another place")
    if target.exists() and not overwrite:
        raise Conflict(f"{target} is there already", hint="name another file, or say --force to replace it")


def _write_backup(database: Path, target: Path, report: Report | None) -> Verdict:
    partial = beside(target, PARTIAL)
    _remove_partial(partial)
    try:
        copy_database(database, partial, report)
        verdict = verify(partial, Depth.DAMAGE, report=report)
        for defect in verdict.defects:
            if defect.kind is DefectKind.DAMAGE:
                raise StoreCorrupt(f"{database} was not backed up: {defect.message}", hint=defect.hint)
        noted = write_checksum(partial, target.name, report)
        for made in (partial, noted):
            give_to_owner(made, database)
        # A checksum that does not fit would speak against a good backup; none at all does not.
        beside(target, SUFFIX).unlink(missing_ok=True)
        partial.replace(target)
        noted.replace(beside(target, SUFFIX))
        sync_directory(target.parent)
    except OSError as exc:
        raise write_error(target, exc) from exc
    finally:
        _remove_partial(partial)
    return replace(verdict, path=target)


def _remove_partial(partial: Path) -> None:
    beside(partial, SUFFIX).unlink(missing_ok=True)
    remove(partial)


def _remove_backup(path: Path) -> bool:
    try:
        path.unlink()
        beside(path, SUFFIX).unlink(missing_ok=True)
    except OSError as exc:
        # The new one is there, which matters more than that an old one is still there.
        warn(__name__, "the old backup %s could not be removed: %s", path, exc)
        return False
    return True


def _remove_leftovers(database: Path, directory: Path) -> None:
    """Remove what processes left that died over a backup."""
    form = re.compile(_name_pattern(database) + rf"(?:{re.escape(PARTIAL)}.*|{re.escape(SUFFIX)})")
    for each in directory.iterdir():
        named = form.fullmatch(each.name)
        if named and (each.suffix != SUFFIX or PARTIAL in each.name or not (directory / named[1]).exists()):
            each.unlink(missing_ok=True)


def _next_name(database: Path, directory: Path) -> Path:
    name = f"{database.stem}-{time.strftime(STAMP)}"
    target, number = directory / f"{name}.db", 1
    while target.exists():
        number += 1
        target = directory / f"{name}-{number}.db"
    return target


def _name_pattern(database: Path) -> str:
    """How the names of its backups look: the whole, the time, and a number where there are several."""
    return rf"({re.escape(database.stem)}-(\d{{8}}_\d{{6}})(?:-(\d+))?\.db)"
