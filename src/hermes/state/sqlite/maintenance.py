"""The upkeep of an SQLite file: merging its indexes, giving back room, erasing what was deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import apsw

from hermes.errors import StoreBusy, StoreFull
from hermes.state.engine import OutOfTime, Reading, Report, Transaction
from hermes.state.maintenance.disk_usage import DiskUsage
from hermes.state.sqlite.connection import View, open_writer, time_limit
from hermes.state.sqlite.disk_usage import add_up, measure_parts
from hermes.state.sqlite.errors import translate
from hermes.state.sqlite.files.names import LOG, beside, bytes_of, real_file
from hermes.state.sqlite.files.open_by import holders_of
from hermes.state.sqlite.files.swap import writer_lock_held
from hermes.state.sqlite.filesystem import free_bytes
from hermes.state.sqlite.schema import inspection
from hermes.state.sqlite.search import index_state

MERGE_PAGES = 500
"""How much of an index one transaction merges, so that nobody else has to wait long."""
LOCK_TIMEOUT_S = 60.0
TRUNCATE_TIMEOUT_S = 10.0
STEPS_BETWEEN_REPORTS = 200_000

Read = Callable[[Callable[[Reading], DiskUsage | None]], DiskUsage | None]
Write = Callable[[Callable[[Transaction], int]], int]


class SqliteMaintenance:
    """Keeps one file in order."""

    def __init__(self, path: Path, read: Read, write: Write) -> None:
        self._path = path
        self._read = read
        self._write = write

    def merge_index(self, report: Report | None = None, /) -> int:
        """Bring each full-text index into its shortest form, while others write; answers how many there are."""
        for table in index_state.TABLES:
            # A negative number begins a merge of everything, whatever state the index is in; positive ones go on.
            pages, merged = -MERGE_PAGES, 0
            while self._write(partial(_merge, table=table, pages=pages)):
                pages = MERGE_PAGES
                merged += MERGE_PAGES
                if report is not None:
                    report(f"merging {table}", merged, 0)
        return len(index_state.TABLES)

    def compact(self, report: Report | None = None, /) -> None:
        """Give unused room back to the disk: the file is written anew, and others wait meanwhile."""
        self._vacuum_and_empty_log(report, log_timeout_s=0)

    def erase(self, report: Report | None = None, /) -> None:
        """Leave nothing of what was ever deleted in the store's files.

        A deleted word stays in the pages of an index until they are merged, in the unused parts of the file until that
        is written anew, and in the log until that is emptied.
        """
        self.merge_index(report)
        if not self._vacuum_and_empty_log(report, log_timeout_s=TRUNCATE_TIMEOUT_S):
            readers = ", ".join(f"pid {each.pid} ({each.command})" for each in holders_of(self._path) or ())
            raise StoreBusy(
                f"the log of {self._path} cannot be emptied while it is read"
                + (f"; it is open in {readers}" if readers else ""),
                hint="`hermes sessions optimize` empties it later",
            )

    def disk_usage(self, limit_s: float, /) -> DiskUsage | None:
        """Measure the file; None if there was not the time to read every page."""

        def measure(tx: Reading) -> DiskUsage | None:
            view = cast(View, tx)
            try:
                with time_limit(view.connection, limit_s):
                    return add_up(measure_parts(view))
            except OutOfTime:
                return None

        return self._read(measure)

    def _vacuum_and_empty_log(self, report: Report | None, *, log_timeout_s: float) -> bool:
        """Write the file anew and empty its log; False if a reader keeps the log."""
        self._require_room()
        with writer_lock_held(self._path, LOCK_TIMEOUT_S):
            connection = open_writer(self._path)
            try:
                self._vacuum(connection, report)
                return _empty_log(connection, log_timeout_s)
            except apsw.Error as exc:
                raise translate(exc, self._path) from exc
            finally:
                connection.close()

    def _vacuum(self, connection: apsw.Connection, report: Report | None) -> None:
        """Write the file anew, by way of the log."""
        log, expected = beside(real_file(self._path), LOG), self._used_bytes(View(connection))

        def report_progress() -> bool:
            assert report is not None
            report("compacting", min(bytes_of(log), expected), expected)
            return False

        if report is not None:
            connection.set_progress_handler(report_progress, STEPS_BETWEEN_REPORTS)
        connection.execute("VACUUM").fetchall()
        connection.set_progress_handler(None)
        view = View(connection)
        view.run("BEGIN IMMEDIATE")
        inspection.store_schema_cookie(view)
        view.run("COMMIT")

    def _used_bytes(self, view: View) -> int:
        pages = int(view.value("PRAGMA page_count")) - int(view.value("PRAGMA freelist_count"))
        return pages * int(view.value("PRAGMA page_size"))

    def _require_room(self) -> None:
        """While a file is written anew there are two of it, and a log as large."""
        path = real_file(self._path)
        needed, free = 2 * bytes_of(path), free_bytes(path)
        if free is not None and free < needed:
            raise StoreFull(
                f"compacting {path} needs {needed} bytes of room on its disk, and there are {free}",
                hint="make room, or leave the file as it is: nothing depends on this",
            )


def _merge(tx: Transaction, table: str, pages: int) -> int:
    """Merge a little of an index; 0 if there was nothing to merge."""
    connection = cast(View, tx).connection
    before = connection.total_changes()
    tx.run(f"INSERT INTO {table}({table}, rank) VALUES ('merge', :pages)", pages=pages)
    # The statement itself counts as one change.
    return int(connection.total_changes() - before > 1)


def _empty_log(connection: apsw.Connection, timeout_s: float) -> bool:
    """Move the log into the database and cut it to nothing; False if a reader is in the way all the time."""
    connection.set_busy_timeout(0)
    deadline = time.monotonic() + timeout_s
    while True:
        # The first number says whether somebody was in the way.
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 0:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
