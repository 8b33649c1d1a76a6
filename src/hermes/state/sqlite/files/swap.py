"""Putting another file where a database is, while other processes have it open.

Those that keep the rules look, under the writer lock, whether the file at the path is still theirs, and go on with the
new one. What must never happen is that a log of the old file meets the new one: SQLite would take it for its own.
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
    """Hold the writer lock of a database: until the end of the block nobody who keeps the rules writes to it."""
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
    """Put `replacement`, a closed database without a log, where `database` is; its old content is gone.

    The caller is `alone` with the database, does not have it open, and has kept of it what is to be kept. A process
    that dies in here leaves the old content, or the new one to be put there by whoever writes or opens next.
    """
    target = real_file(database)
    if target.exists():
        checkpoint_fully(target)
    replacement.replace(replacement_path(target))
    sync_directory(target.parent)
    finish_swap(target)


def replacement_path(database: Path) -> Path:
    """What is about to take the place of a database: as long as it is there, nothing may be written."""
    return beside(real_file(database), REPLACEMENT)


def finish_swap(database: Path) -> None:
    """Do what is left of an exchange that was begun, by this process or by one that died; the caller is `alone`.

    There is no way back: others may have a log open that is not at its path any more, and would go on writing to it.
    """
    target, replacement = real_file(database), replacement_path(database)
    if not replacement.exists():
        return
    # In this order: a log without shared memory is read anew, shared memory without its log misleads.
    for suffix in (SHARED_MEMORY, LOG, JOURNAL):
        beside(target, suffix).unlink(missing_ok=True)
    sync_directory(target.parent)
    replacement.replace(target)
    sync_directory(target.parent)


def checkpoint_fully(database: Path) -> bool:
    """Move the log of a database into it, page by page, whatever the pages hold; True if nothing is left in the log."""
    with suppress(apsw.Error):
        connection = connect(database, apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("PRAGMA synchronous = full").fetchall()
            connection.execute(
                "SELECT 1 FROM sqlite_schema LIMIT 1"
            ).fetchall()  # rolls back what a crash left half done
            _, in_log, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()[0]
            return in_log == moved
        finally:
            close_keeping_files(connection)
    return False
