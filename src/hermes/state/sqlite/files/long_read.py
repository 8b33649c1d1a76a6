"""Long reads of a whole database, while other processes write to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from hermes.errors import NotFound, StoreBusy
from hermes.state.sqlite.connection import open_reader, open_unshared
from hermes.state.sqlite.errors import translate
from hermes.state.sqlite.files.names import (
    JOURNAL,
    LOG,
    SHARED_MEMORY,
    beside,
    bytes_of,
    real_file,
    refuse_lone_log,
    require_file,
)

PATIENCE_S = 30.0
"""Only without a log does a reader wait for writers at all."""
LOG_LIMIT_BYTES = 1 << 30


class LogWatch:
    """Ends a long read before the log of a busy database fills the disk: no log is emptied while it is being read."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = beside(real_file(database), LOG)
        self._began_with = bytes_of(self._log)

    def check(self) -> None:
        """Raise `StoreBusy` if too much has been written since the read began."""
        growth = bytes_of(self._log) - self._began_with
        if growth > LOG_LIMIT_BYTES:
            raise StoreBusy(
                f"{self._database} was not read to its end: its log grew by {growth >> 20} MB meanwhile",
                hint="try again when less is being written, or use a faster disk",
            )


@contextmanager
def open_long_read(database: Path, *, in_use: bool = True) -> Iterator[apsw.Connection]:
    """Open a connection that only reads a file, on any file system and of any program; translate SQLite's errors.

    A file that is not in use, such as a backup, is read without a lock, so that no files appear next to it.
    """
    require_file(database, NotFound(f"there is no file {database}", hint="check the path"))
    refuse_lone_log(database)
    try:
        connection = _connect(database, in_use=in_use)
        try:
            connection.set_busy_timeout(int(PATIENCE_S * 1000))
            yield connection
        finally:
            connection.close()
    except apsw.Error as exc:
        raise translate(exc, database) from exc


def begin_snapshot(connection: apsw.Connection) -> None:
    """Begin a read transaction: the connection sees one moment of its database until it is closed or rolls back."""
    connection.execute("BEGIN").fetchall()
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()


def has_log(connection: apsw.Connection) -> bool:
    """Whether the database has a log, so that readers and writers do not wait for each other."""
    return connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


def _connect(database: Path, *, in_use: bool) -> apsw.Connection:
    file = real_file(database)
    if not in_use and not any(beside(file, suffix).exists() for suffix in (LOG, SHARED_MEMORY, JOURNAL)):
        return open_reader(database, immutable=True)
    try:
        return _connect_waiting(database)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # Where nothing can be written next to a file, it is read as it is, unless a log or journal holds a part of it.
        if bytes_of(beside(file, LOG)) and not any(beside(file, each).exists() for each in (SHARED_MEMORY, JOURNAL)):
            return open_unshared(database)
        if any(bytes_of(beside(file, suffix)) for suffix in (LOG, JOURNAL)):
            raise
    return open_reader(database, immutable=True)


def _connect_waiting(database: Path) -> apsw.Connection:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _require_readable(open_reader(database))
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise


def _require_readable(connection: apsw.Connection) -> apsw.Connection:
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection
