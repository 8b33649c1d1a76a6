"""Replacing a database file while other processes have it open.

Processes that follow the rules check, under the writer lock, whether the file at the path is still theirs, and open
the new one. A log of the old file must never meet the new file: SQLite would take it for its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from hermes.errors import StoreBusy
from hermes.home import sync_directory
from hermes.state.sqlite.connection import close_keeping_files, connect
from hermes.state.sqlite.files.names import JOURNAL, LOG, SHARED_MEMORY, beside, real_file
from hermes.state.sqlite.files.writer_lock import WriterLock

POLL_S = 0.02
REPLACEMENT = ".next"


@contextmanager
def writer_lock_held(database: Path, timeout_s: float) -> Iterator[None]:
    """Hold the writer lock of a database: no process that takes the lock writes to it inside the block."""
    lock = WriterLock(real_file(database))
    deadline = time.monotonic() + timeout_s
    try:
        while not lock.try_acquire():
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"{database} is being written by another process ({lock.holder() or 'unknown'})",
                    hint="wait until it is done, or stop it, and try again",
                )
            time.sleep(POLL_S)
        finish_swap(database)
        yield
    finally:
        lock.close()


def replace_database(database: Path, replacement: Path) -> None:
    """Put `replacement`, a closed database without a log, at the path of `database`; the old content is lost.

    The caller holds the writer lock, does not have the database open, and has kept a copy if it needs one. If a process
    dies in here, the path has the old content, or the next process that opens the file finishes the swap.
    """
    target = real_file(database)
    if target.exists():
        checkpoint_fully(target)
    replacement.replace(replacement_path(target))
    sync_directory(target.parent)
    finish_swap(target)


def replacement_path(database: Path) -> Path:
    """The file that is about to replace a database: while it exists, nothing may be written."""
    return beside(real_file(database), REPLACEMENT)


def finish_swap(database: Path) -> None:
    """Finish a swap that this process or a dead one began; the caller holds the writer lock.

    A swap cannot be undone: other processes may have the removed log open, and would continue to write to it.
    """
    target, replacement = real_file(database), replacement_path(database)
    if not replacement.exists():
        return
    # In this order: SQLite rebuilds missing shared memory from the log, but shared memory without its log misleads it.
    for suffix in (SHARED_MEMORY, LOG, JOURNAL):
        beside(target, suffix).unlink(missing_ok=True)
    sync_directory(target.parent)
    replacement.replace(target)
    sync_directory(target.parent)


def checkpoint_fully(database: Path) -> bool:
    """Move the log of a database into it, whatever its pages hold; return True if nothing is left in the log."""
    with suppress(apsw.Error):
        connection = connect(database, apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("PRAGMA synchronous = full").fetchall()
            connection.execute(
                "SELECT 1 FROM sqlite_schema LIMIT 1"
            ).fetchall()  # rolls back an unfinished write of a crashed process
            _, in_log, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()[0]
            return in_log == moved
        finally:
            close_keeping_files(connection)
    return False
