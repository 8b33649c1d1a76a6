"""The working files of a repair: a copy of the damaged database, and a new file for the salvaged rows."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from hermes.errors import StoreBusy, StoreError, StoreFull, StoreUnavailable
from hermes.home import sync_directory
from hermes.state.engine import Report
from hermes.state.sqlite.backup.backup import give_to_owner
from hermes.state.sqlite.checks.verify import DefectKind, Depth, verify
from hermes.state.sqlite.connection import View, connect
from hermes.state.sqlite.errors import translate
from hermes.state.sqlite.files.byte_copy import copy_bytes
from hermes.state.sqlite.files.names import JOURNAL, LOG, SHARED_MEMORY, beside, bytes_of, remove, timestamped_path
from hermes.state.sqlite.files.page_copy import sync_file
from hermes.state.sqlite.files.swap import checkpoint_fully, replace_database
from hermes.state.sqlite.filesystem import free_bytes
from hermes.state.sqlite.provider import SQLiteSessionDBProvider
from hermes.state.sqlite.repair.damaged_file import DamagedFile
from hermes.state.sqlite.repair.diagnosis import INDEX_CODES, damage_of, defects_of, require_our_file, require_rows
from hermes.state.sqlite.repair.salvage import STEPS_BETWEEN_LOOKS, Salvaged, salvage
from hermes.state.sqlite.schema import inspection
from hermes.state.sqlite.schema.definitions import schema_sql
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.search.indexing import index_batch

DAMAGED, REPAIRED, PARTIAL = "damaged", "repaired", ".partial"
PARTS = (LOG, JOURNAL, SHARED_MEMORY, "")
LOCKS = (".lock", ".gate")
BESIDE = (*map(re.escape, LOCKS), LOG, JOURNAL, SHARED_MEMORY)
ROOM_FACTOR, ROOM_RESERVE = 2.5, 16 << 20
"""A repair needs a copy of the file, a new file, and for a while a log of the new file."""
BATCHES_PER_TRANSACTION = 8

FileState = tuple[tuple[int, int, int] | None, ...]
"""What changes when a database is written to."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of examining a database."""

    is_empty: bool = False
    damage: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    salvaged: Salvaged | None = None
    """What was saved from it; None if nothing is wrong."""


class WorkingCopy:
    """The files of one repair, next to the database or in another directory."""

    def __init__(self, database: Path, place: Path, report: Report | None = None) -> None:
        self._database = database
        self._report = report
        self._kept = timestamped_path(place / database.name, DAMAGED)
        self._copy = beside(self._kept, PARTIAL)
        self._repaired = timestamped_path(place / database.name, REPAIRED)
        self._copied: list[str] = []
        self._unreadable = 0
        self._copied_state: FileState = ()

    def copy(self) -> None:
        """Copy the database with its log, byte by byte; all other steps use the copy."""
        self._require_room()
        self._copied_state = _file_state(self._database)
        self._copied = [suffix for suffix in PARTS if beside(self._database, suffix).exists()]
        with self._translating_errors():
            self._unreadable = 0
            for suffix in self._copied:
                self._unreadable += copy_bytes(beside(self._database, suffix), beside(self._copy, suffix), self._report)
                give_to_owner(beside(self._copy, suffix), self._database)
        if self.was_written():
            raise StoreBusy(
                f"{self._database} was changed by another program while it was copied",
                hint="end that program and try again; nothing was changed",
            )
        if bytes_of(beside(self._copy, JOURNAL)):
            checkpoint_fully(self._copy)  # rolls back an unfinished write, as in the database itself

    def examine(self) -> Examination:
        """Return what is wrong with the copy, and salvage its rows if something is."""
        if not bytes_of(self._copy) and not bytes_of(beside(self._copy, LOG)):
            return Examination(is_empty=True)
        damaged = DamagedFile(self._copy, schema_sql())
        try:
            require_our_file(damaged, self._database)
            if damaged.is_schema_whole and not damaged.schema_entries:
                return Examination(is_empty=True)
            defects = defects_of(self._copy, damaged, self._unreadable, self._report)
            if not defects:
                return Examination()
            with self._translating_errors():
                salvaged = salvage(damaged, self._repaired, self._report)
            require_rows(damaged, salvaged, self._copy, self._database)
            problems = tuple(each.message.replace(str(self._copy), str(self._database)) for each in defects)
            return Examination(False, damage_of(defects, salvaged), problems, salvaged)
        finally:
            damaged.close()

    def complete(self, salvaged: Salvaged) -> None:
        """Make a complete store of the salvaged rows, with indexes, counters and search, and verify it."""
        with self._translating_errors():
            give_to_owner(self._repaired, self._database)
            opened = inspection.open_for_writing(self._repaired)
            assert opened is not None
            opened.connection.close()
            opened.lock.close()
            self._fill_index()
            self._confirm(salvaged)
            self._remove_locks()
            sync_file(self._repaired)

    def was_written(self) -> bool:
        """Whether another process has written to the database since it was copied."""
        return _file_state(self._database) != self._copied_state

    def swap(self) -> Path:
        """Replace the database with the new file, and return the path of the old one, which is kept."""
        with self._translating_errors():
            for suffix in self._copied:
                if beside(self._copy, suffix).exists():
                    beside(self._copy, suffix).replace(beside(self._kept, suffix))
            sync_directory(self._kept.parent)
            shutil.copymode(self._database, self._repaired)
            self._kept.stat()  # from here on the swap cannot be undone
            try:
                replace_database(self._database, self._repaired)
            except KeyboardInterrupt:
                if self._repaired.exists():
                    replace_database(self._database, self._repaired)  # an unfinished swap would be worse than none
                raise
        return self._kept

    def discard(self) -> None:
        """Remove the working files that are not in use."""
        remove(self._copy)
        remove(self._repaired)
        self._remove_locks()

    def remove_leftovers(self) -> None:
        """Remove the files of a killed repair next to the database; the writer lock shows that none is running."""
        name, stamp = re.escape(self._database.name), r"\d{8}_\d{6}(-\d+)?"
        form = re.compile(rf"{name}\.({DAMAGED}-{stamp}{re.escape(PARTIAL)}|{REPAIRED}-{stamp})({'|'.join(BESIDE)})?")
        for each in self._database.parent.iterdir():
            if form.fullmatch(each.name):
                each.unlink()

    def _require_room(self) -> None:
        size = sum(bytes_of(beside(self._database, suffix)) for suffix in PARTS)
        needed, free = int(size * ROOM_FACTOR) + ROOM_RESERVE, free_bytes(self._copy)
        if free is not None and free < needed:
            raise StoreFull(
                f"repairing {self._database} needs {needed >> 20} MB in {self._copy.parent},"
                f" which has {free >> 20} MB free",
                hint="free some space on that disk and try again; nothing was changed",
            )

    def _fill_index(self) -> None:
        connection = connect(self._repaired, apsw.SQLITE_OPEN_READWRITE, is_defended=False)
        try:
            for pragma in ("journal_mode = delete", "journal_mode = off", "synchronous = off"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.set_progress_handler(lambda: False, STEPS_BETWEEN_LOOKS)  # lets Ctrl-C in
            view = View(connection)
            newest = view.value("SELECT MAX(id) FROM messages") or 0
            done = 1
            while done:
                view.run("BEGIN IMMEDIATE")
                done = sum(index_batch(view) for _ in range(BATCHES_PER_TRANSACTION))
                view.run("COMMIT")
                if self._report is not None:
                    self._report("indexing", index_state.indexed_upto(view), newest)
        finally:
            connection.close()

    def _confirm(self, salvaged: Salvaged) -> None:
        """Raise if the new file is damaged, incomplete, or cannot be opened as a store."""
        verdict = verify(self._repaired, Depth.FULL, report=self._report)
        wrong = [
            each.message for each in verdict.defects if each.kind is not DefectKind.DRIFT or each.code in INDEX_CODES
        ]
        if verdict.contents is None or verdict.contents[:2] != (salvaged.sessions, salvaged.messages):
            wrong.append(f"it has {verdict.contents} of {salvaged.sessions} sessions and {salvaged.messages} messages")
        with SQLiteSessionDBProvider(self._repaired) as store:
            if store.session_count(include_archived=True) != salvaged.sessions:
                wrong.append("it does not show all sessions")
        if wrong:
            raise StoreError(
                f"the repaired copy of {self._database} is not usable: {wrong[0]}",
                hint="nothing was changed; keep the file, and please report this",
            )

    def _remove_locks(self) -> None:
        for suffix in LOCKS:
            beside(self._repaired, suffix).unlink(missing_ok=True)

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Translate errors of SQLite and of the system about the new files."""
        try:
            yield
        except apsw.Error as exc:
            raise translate(exc, self._repaired) from exc
        except OSError as exc:
            kind = StoreFull if exc.errno in (errno.ENOSPC, errno.EDQUOT) else StoreUnavailable
            where = exc.filename or self._database.parent
            raise kind(f"{where}: {exc.strerror}", hint="check the disk and try again; nothing was changed") from exc


def _file_state(database: Path) -> FileState:
    found: list[tuple[int, int, int] | None] = []
    for suffix in ("", LOG):
        try:
            status = beside(database, suffix).stat()
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return tuple(found)
