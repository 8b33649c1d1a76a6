"""The files of a database: its own, those that SQLite keeps beside it, and those that are kept of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hermes.errors import StoreCorrupt

LOG, SHARED_MEMORY, JOURNAL = "-wal", "-shm", "-journal"


def beside(database: Path, suffix: str) -> Path:
    """A file that belongs to a database."""
    return Path(f"{database}{suffix}")


def real_file(database: Path) -> Path:
    """The file itself, through whichever link it is named; a link is never replaced by a file."""
    return Path(os.path.realpath(database))


def timestamped_path(database: Path, word: str) -> Path:
    """A name that is free, for something that is kept of a database: `state.db.<word>-<time>`."""
    name = f"{database}.{word}-{time.strftime('%Y%m%d_%H%M%S')}"
    target, number = Path(name), 1
    while target.exists():
        number += 1
        target = Path(f"{name}-{number}")
    return target


def bytes_of(path: Path) -> int:
    """The size of a file; 0 if it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def refuse_lone_log(database: Path) -> None:
    """Keep SQLite from removing the log of a database that was cut off to nothing, even if it is only to read."""
    if not bytes_of(database) and bytes_of(beside(real_file(database), LOG)):
        raise StoreCorrupt(f"{database} was cut off to nothing, and only its log is left")


def keep_orphaned_log(database: Path) -> Path:
    """Keep a log that is not, or not any more, that of the file at its path: SQLite would take it for its log."""
    kept = beside(timestamped_path(database, "left"), LOG)
    beside(database, LOG).replace(kept)
    beside(database, SHARED_MEMORY).unlink(missing_ok=True)
    return kept


def remove(database: Path) -> None:
    """Remove a file that nobody uses, with what SQLite keeps beside it."""
    for suffix in (LOG, SHARED_MEMORY, JOURNAL, ""):
        beside(database, suffix).unlink(missing_ok=True)
