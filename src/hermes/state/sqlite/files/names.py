"""The names of a database's files: the file itself, SQLite's companions, and kept copies."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hermes.errors import NotADatabase, NotFound, StoreCorrupt, StoreUnavailable

LOG, SHARED_MEMORY, JOURNAL = "-wal", "-shm", "-journal"


def beside(database: Path, suffix: str) -> Path:
    """The path of a file that belongs to a database."""
    return Path(f"{database}{suffix}")


def real_file(database: Path) -> Path:
    """The file itself, with every link resolved: a link is never replaced by a file."""
    return Path(os.path.realpath(database))


def timestamped_path(database: Path, word: str) -> Path:
    """A free name for a kept copy of a database: `state.db.<word>-<time>`."""
    name = f"{database}.{word}-{time.strftime('%Y%m%d_%H%M%S')}"
    target, number = Path(name), 1
    while target.exists():
        number += 1
        target = Path(f"{name}-{number}")
    return target


def bytes_of(path: Path) -> int:
    """The size of a file; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def require_file(database: Path, missing: NotFound) -> None:
    """Raise `missing` if there is nothing at the path, and other errors if it is no file or cannot be reached."""
    try:
        is_file, is_there = database.is_file(), database.exists()
    except OSError as exc:
        raise StoreUnavailable(f"{database} cannot be reached: {exc.strerror}") from exc
    if not is_there:
        raise missing
    if not is_file:
        raise NotADatabase(f"{database} is a directory or a device", hint="name a file")
    refuse_special_files(database)


def refuse_special_files(database: Path) -> None:
    """Raise if a database or its rollback journal is a pipe, a device or a directory: SQLite would wait for a pipe."""
    file = real_file(database)
    for path in (file, beside(file, JOURNAL)):
        if is_special(path):
            raise NotADatabase(f"{path} is not a file", hint="move it away, or name another database file")


def is_special(path: Path) -> bool:
    """Whether a path is a pipe, a device or a directory."""
    return path.exists() and not path.is_file()


def refuse_lone_log(database: Path) -> None:
    """Raise if a database is empty but its log is not: SQLite would remove the log, even for a reader."""
    if not bytes_of(database) and bytes_of(beside(real_file(database), LOG)):
        raise StoreCorrupt(f"{database} is empty, and only its log is left")


def keep_orphaned_log(database: Path) -> Path:
    """Rename a log that no longer belongs to the file at its path, because SQLite would use it; return its new path."""
    kept = beside(timestamped_path(database, "left"), LOG)
    beside(database, LOG).replace(kept)
    beside(database, SHARED_MEMORY).unlink(missing_ok=True)
    return kept


def remove(database: Path) -> None:
    """Remove a database that no process uses, with SQLite's files next to it."""
    for suffix in (LOG, SHARED_MEMORY, JOURNAL, ""):
        beside(database, suffix).unlink(missing_ok=True)
