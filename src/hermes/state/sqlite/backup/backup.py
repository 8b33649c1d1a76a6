"""Backups of a database: copied while other processes write, verified before they count, and limited in number."""

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
except ImportError:  # pragma: no cover - Windows: only one backup at a time
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".partial"
STAMP = "%Y%m%d_%H%M%S"

_OWN_FILES = ("", LOG, SHARED_MEMORY, JOURNAL, ".lock", ".gate", ".spool", ".spool.unreadable")


class BackupResult(NamedTuple):
    """A new backup, and the old backups that were removed."""

    verdict: Verdict
    removed: list[Path]


def back_up(database: Path, target: Path, *, overwrite: bool = False, report: Report | None = None) -> Verdict:
    """Write a backup to `target`; the file appears there only when it is complete and verified.

    Other processes may read and write meanwhile. The backup holds everything that was stored before it began. Its
    checksum lies next to it.
    """
    target = real_file(target)
    try:
        _refuse_target(database, target, overwrite=overwrite)
    except OSError as exc:
        raise StoreUnavailable(f"{target} cannot be reached: {exc.strerror}") from exc
    with directory_lock(target.parent):
        return _write_backup(database, target, report)


def back_up_into(database: Path, directory: Path, keep: int, report: Report | None = None) -> BackupResult:
    """Write a backup under a new name, then remove the oldest backups of this kind until `keep` are left."""
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
    """List the backups of a database that `back_up_into` made, the newest first."""
    form = re.compile(_name_pattern(database))
    found = []
    for each in directory.iterdir() if directory.is_dir() else ():
        if (match := form.fullmatch(each.name)) and each.is_file() and not each.is_symlink():
            found.append((match[2], int(match[3] or 1), each))
    return [path for *_, path in sorted(found, reverse=True)]


@contextmanager
def directory_lock(directory: Path) -> Iterator[bool]:
    """Lock a directory against other backups, so that a partial file in it comes from a process that died.

    Yields False where directories cannot be locked.
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
    """Make the owner of the database the owner of a file that root created."""
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
        return False  # not every file system can do this
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
        raise Conflict(f"{target} already exists", hint="name another file, or pass --force to replace it")


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
        # A wrong checksum would reject a good backup; a missing one does not.
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
        # The new backup exists, which matters more than an old one that stays.
        warn(__name__, "the old backup %s could not be removed: %s", path, exc)
        return False
    return True


def _remove_leftovers(database: Path, directory: Path) -> None:
    """Remove the partial files of processes that died during a backup."""
    form = re.compile(_name_pattern(database) + rf"(?:{re.escape(PARTIAL)}.*|{re.escape(SUFFIX)})")
    for each in directory.iterdir():
        match = form.fullmatch(each.name)
        if match and (each.suffix != SUFFIX or PARTIAL in each.name or not (directory / match[1]).exists()):
            each.unlink(missing_ok=True)


def _next_name(database: Path, directory: Path) -> Path:
    """Return a name that comes after those of all other backups, also of those made in the same second."""
    form, stamp = re.compile(_name_pattern(database)), time.strftime(STAMP)
    matches = [match for each in directory.iterdir() if (match := form.fullmatch(each.name)) and match[2] == stamp]
    number = max((int(match[3] or 1) for match in matches), default=0) + 1
    return directory / f"{database.stem}-{stamp}{f'-{number}' if number > 1 else ''}.db"


def _name_pattern(database: Path) -> str:
    """The pattern of its backups' names: the whole name, the time, and a number if several have the same time."""
    return rf"({re.escape(database.stem)}-(\d{{8}}_\d{{6}})(?:-(\d+))?\.db)"
