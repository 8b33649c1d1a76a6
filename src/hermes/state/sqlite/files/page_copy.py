"""Copying a database page by page, while other processes write to it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import apsw

from hermes.errors import StoreError, StoreFull, StoreUnavailable
from hermes.home import create_private_file
from hermes.state.engine import Report
from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.errors import translate
from hermes.state.sqlite.files.long_read import LogWatch, begin_snapshot, has_log, open_long_read
from hermes.state.sqlite.files.names import remove
from hermes.state.sqlite.filesystem import free_bytes

STEP_PAGES = 2_048
STEPS_BETWEEN_SYNCS = 4
"""The copy is synced little by little: one large sync would delay other processes that write to the disk."""
MAX_RESTARTS = 3
RESERVE_BYTES = 16 << 20
"""This much of a disk is left for other writers."""


def copy_database(source: Path, target: Path, report: Report | None = None, *, in_use: bool = True) -> None:
    """Copy one moment of `source` to `target`, which must not exist: one file, without a log, synced to disk.

    If the source has a log, no process waits for the copy, and later writes are not in it. If the copy fails or is
    interrupted, nothing is left.
    """
    with open_long_read(source, in_use=in_use) as connection:
        _require_room(connection, target)
        try:
            create_private_file(target)
            _copy_into(connection, target, LogWatch(source), report)
        except BaseException as exc:
            remove(target)
            if isinstance(exc, apsw.Error) and not _is_source_fault(exc):
                raise translate(exc, target) from exc
            if isinstance(exc, OSError):
                raise write_error(target, exc) from exc
            raise


def write_error(path: Path, exc: OSError) -> StoreError:
    """Return the error of our tree for a file that could not be written."""
    kind = StoreFull if exc.errno in (errno.ENOSPC, errno.EDQUOT) else StoreUnavailable
    return kind(f"{path} cannot be written: {exc.strerror}")


def sync_file(path: Path) -> None:
    """Sync a file, so that its content survives a power cut."""
    fd = os.open(path, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _is_source_fault(exc: apsw.Error) -> bool:
    """Whether the source caused an error: nothing is read from the copy."""
    read_errors = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS)
    return isinstance(exc, apsw.CorruptError | apsw.NotADBError | apsw.BusyError) or (
        getattr(exc, "extendedresult", 0) in read_errors
    )


def _require_room(source: apsw.Connection, target: Path) -> None:
    pages, page_bytes = (source.execute(f"PRAGMA {name}").fetchall()[0][0] for name in ("page_count", "page_size"))
    assert isinstance(pages, int)
    assert isinstance(page_bytes, int)
    needed, free = pages * page_bytes + RESERVE_BYTES, free_bytes(target)
    if free is not None and free < needed:
        raise StoreFull(
            f"a copy in {target.parent} needs {needed >> 20} MB on its disk, which has {free >> 20} MB free",
            hint="free some space, or copy to another disk",
        )


def _copy_into(source: apsw.Connection, target: Path, watch: LogWatch, report: Report | None) -> None:
    fd = os.open(target, os.O_RDWR)  # closed last, because closing it drops SQLite's locks
    try:
        copy = connect(target, apsw.SQLITE_OPEN_READWRITE, is_defended=False)
        try:
            # An unfinished copy is thrown away: it needs no rollback and no sync by SQLite.
            for pragma in ("journal_mode = off", "synchronous = off"):
                copy.execute(f"PRAGMA {pragma}").fetchall()
            _copy_pages(source, copy, fd, watch, report)
            # The header says that there is a log, and SQLite has counted the copy as a change of the schema.
            copy.execute("PRAGMA journal_mode = delete").fetchall()
            (cookie,) = source.execute("PRAGMA schema_version").fetchall()[0]
            copy.execute(f"PRAGMA schema_version = {cookie}").fetchall()
        finally:
            copy.close()
        os.fsync(fd)
    finally:
        os.close(fd)


def _copy_pages(
    source: apsw.Connection, copy: apsw.Connection, fd: int, watch: LogWatch, report: Report | None
) -> None:
    if has_log(source):
        begin_snapshot(source)  # otherwise every write would restart the copy
    restarts, left, steps = 0, 0, 0
    with copy.backup("main", source, "main") as backup:
        while not backup.done:
            backup.step(STEP_PAGES)
            watch.check()
            if left and backup.remaining >= left:
                restarts += 1
                if restarts == MAX_RESTARTS:
                    begin_snapshot(source)  # without a log, writers have to wait now, or the copy would never end
            left = backup.remaining
            if report is not None:
                report("copying", backup.page_count - left, backup.page_count)
            steps += 1
            if steps % STEPS_BETWEEN_SYNCS == 0:
                os.fsync(fd)
