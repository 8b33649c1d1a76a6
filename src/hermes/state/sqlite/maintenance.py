"""Maintenance of an SQLite file: merging its indexes, compacting it, erasing deleted text."""

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
"""How many pages of an index one transaction merges, so that other writers do not wait long."""
LOCK_TIMEOUT_S = 60.0
TRUNCATE_TIMEOUT_S = 10.0
STEPS_BETWEEN_REPORTS = 200_000

Read = Callable[[Callable[[Reading], DiskUsage | None]], DiskUsage | None]
Write = Callable[[Callable[[Transaction], int]], int]


class SqliteMaintenance:
    """The maintenance operations of one file."""

    def __init__(self, path: Path, read: Read, write: Write) -> None:
        self._path = path
        self._read = read
        self._write = write

    def merge_index(self, report: Report | None = None, /) -> int:
        """Merge each full-text index while others write; return the number of indexes."""
        for table in index_state.TABLES:
            # A negative number begins a merge of everything, whatever state the index is in; positive ones continue it.
            pages, merged = -MERGE_PAGES, 0
            while self._write(partial(_merge, table=table, pages=pages)):
                pages = MERGE_PAGES
                merged += MERGE_PAGES
                if report is not None:
                    report(f"merging {table}", merged, 0)
        return len(index_state.TABLES)

    def compact(self, report: Report | None = None, /) -> None:
        """Give unused space back to the disk: rewrite the file while other writers wait."""
        self._vacuum_and_empty_log(report, log_timeout_s=0)

    def erase(self, report: Report | None = None, /) -> None:
        """Remove every trace of deleted text from the store's files.

        A deleted word stays in the pages of an index until they are merged, in the unused parts of the file until it is
        rewritten, and in the log until that is emptied.
        """
        self.merge_index(report)
        if not self._vacuum_and_empty_log(report, log_timeout_s=TRUNCATE_TIMEOUT_S):
            readers = ", ".join(f"pid {each.pid} ({each.command})" for each in holders_of(self._path) or ())
            raise StoreBusy(
                f"the log of {self._path} cannot be emptied while other processes read it"
                + (f"; it is open in {readers}" if readers else ""),
                hint="`hermes sessions optimize` empties it later",
            )

    def disk_usage(self, limit_s: float, /) -> DiskUsage | None:
        """Measure the file; None if there is not enough time to read every page."""

        def measure(tx: Reading) -> DiskUsage | None:
            view = cast(View, tx)
            try:
                with time_limit(view.connection, limit_s):
                    return add_up(measure_parts(view))
            except OutOfTime:
                return None

        return self._read(measure)

    def _vacuum_and_empty_log(self, report: Report | None, *, log_timeout_s: float) -> bool:
        """Rewrite the file and empty its log; return False if a reader keeps the log."""
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
        """Rewrite the file through its log."""
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
        """Raise `StoreFull` unless the disk has space for a second copy of the file and a log of the same size."""
        path = real_file(self._path)
        needed, free = 2 * bytes_of(path), free_bytes(path)
        if free is not None and free < needed:
            raise StoreFull(
                f"compacting {path} needs {needed} free bytes on its disk, which has {free}",
                hint="free some space; compacting is optional",
            )


def _merge(tx: Transaction, table: str, pages: int) -> int:
    """Merge a little of an index; return 0 if there was nothing to merge."""
    connection = cast(View, tx).connection
    before = connection.total_changes()
    tx.run(f"INSERT INTO {table}({table}, rank) VALUES ('merge', :pages)", pages=pages)
    # The statement itself counts as one change.
    return int(connection.total_changes() - before > 1)


def _empty_log(connection: apsw.Connection, timeout_s: float) -> bool:
    """Move the log into the database and empty it; return False if a reader still uses it at the end."""
    connection.set_busy_timeout(0)
    deadline = time.monotonic() + timeout_s
    while True:
        # The first number is not 0 if a reader or writer was in the way.
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 0:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
