"""An open SQLite file: its writer, its readers, its search index and its log."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from hermes.errors import HermesError, StoreCorrupt, StoreError, StoreReadOnly, StoreUnavailable
from hermes.log import inform, warn
from hermes.state.sqlite.connection import BUSY_TIMEOUT_MS, View, close_keeping_files, has_moved, open_reader
from hermes.state.sqlite.errors import FileReplaced, is_busy, translate
from hermes.state.sqlite.files import swap
from hermes.state.sqlite.files.names import LOG, beside, keep_orphaned_log, real_file
from hermes.state.sqlite.files.writer_lock import WriterLock
from hermes.state.sqlite.filesystem import free_bytes
from hermes.state.sqlite.schema import inspection
from hermes.state.sqlite.schema.read_only import reader_factory
from hermes.state.sqlite.store.indexer import Indexer
from hermes.state.sqlite.store.readers import Readers
from hermes.state.sqlite.store.writer import Writer

T = TypeVar("T")

CHECKPOINT_EVERY_N_WRITES = 50
WAL_LIMIT_PAGES = 16_384
READ_BUDGET_S = 10.0
FORK_PATIENCE_S = 5.0
DAMAGE_PAUSE_S = 5.0
LOW_DISK_BYTES = 100 * 1024 * 1024


class OpenFile:
    """The connections to one file, and the indexing and checkpoints that follow writes."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.lock: WriterLock | None = None
        self.writer: Writer | None = None
        self._commits = 0
        self._indexer: Indexer | None = None
        self._active = threading.local()
        self._is_finished = False
        # Read before the file is opened, to notice if it is replaced meanwhile.
        self._identity = _identity_of(path)
        # As texts, because they are used for every write.
        self._path_text, self._replacement = os.fspath(path), os.fspath(swap.replacement_path(path))
        self._damage: StoreCorrupt | None = None
        self._damage_until = 0.0
        self._log = beside(real_file(path), LOG)
        self._log_identity: tuple[int, int] | None = None
        try:
            opened = inspection.open_for_writing(path) if writable else None
            self._identity = _identity_of(path)
            if opened is not None:
                # The inode alone is not enough: the system reuses the inode of a removed file.
                if has_moved(opened.connection):
                    close_keeping_files(opened.connection)
                    opened.lock.close()
                    raise FileReplaced(f"{path} was replaced while it was being opened")
                self.lock = opened.lock
                self.writer = Writer(
                    opened.connection,
                    opened.lock,
                    translate=self.translate,
                    confirm=self._require_no_swap,
                    after_commit=self._after_commit,
                )
                self._active = self.writer.active
                self.writer.view.note_added_message(opened.newest_message)
                self.readers = Readers(lambda: open_reader(path))
                self._warn_if_disk_nearly_full()
                self._indexer = Indexer(
                    path,
                    self.writer,
                    self.read,
                    newest_message=opened.newest_message,
                    indexed_upto=opened.indexed_upto,
                )
            else:
                self.readers = Readers(reader_factory(path))
        except apsw.Error as exc:
            if _identity_of(path) != self._identity:
                raise FileReplaced(f"{path} was replaced while it was being opened") from exc
            raise self.translate(exc) from exc
        except OSError as exc:
            raise StoreUnavailable(
                f"{path} cannot be opened: {exc.strerror}", hint="check the permissions of the file and its directory"
            ) from exc

    def _warn_if_disk_nearly_full(self) -> None:
        """Warn early when the disk is nearly full."""
        free = free_bytes(self.path)
        if free is not None and free < LOW_DISK_BYTES:
            warn(__name__, "only %d MB are free on the disk of %s: free some space", free >> 20, self.path)

    def translate(self, exc: apsw.Error) -> HermesError:
        """Convert an SQLite error to one of ours."""
        return translate(exc, self.path)

    def read(self, work: Callable[[View], T]) -> T:
        """Run `work` on a snapshot, or inside the transaction that this thread is in."""
        view = getattr(self._active, "view", None)
        if view is not None:
            return work(view)
        self._require_same_file()
        deadline = time.monotonic() + READ_BUDGET_S
        while True:
            try:
                with self.readers.snapshot() as view:
                    self._active.view = view
                    try:
                        return work(view)
                    finally:
                        self._active.view = None
            except apsw.Error as exc:
                self._require_no_swap()  # the error may only mean that the file has been replaced
                # A reader only waits while another process recovers or resets the WAL.
                if not is_busy(exc) or time.monotonic() > deadline:
                    raise self.translate(exc) from exc

    def write(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Run `work` in a durable transaction, or as part of the one that this thread is in."""
        if self.writer is None:
            raise StoreReadOnly(f"{self.path} was opened for reading only", hint=inspection.read_only_hint(self.path))
        if getattr(self._active, "view", None) is self.writer.view:
            return work(self.writer.view)
        if self._damage is not None and time.monotonic() < self._damage_until:
            self._require_same_file()  # it may have been repaired
            raise StoreCorrupt(self._damage.message, hint=self._damage.hint)
        try:
            return self._write_despite_damaged_index(work, timeout_s)
        except StoreCorrupt as exc:
            self._note_damage(exc)
            raise

    def _write_despite_damaged_index(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Write; if a damaged index makes the write fail, restart the index and write again."""
        assert self.writer is not None
        assert self._indexer is not None
        try:
            return self.writer.write(work, timeout_s)
        except StoreError as exc:
            may_be_the_index = type(exc) in (StoreError, StoreCorrupt, StoreUnavailable)
            if not may_be_the_index or not self._indexer.restart_damaged_index(timeout_s):
                raise
        return self.writer.write(work, timeout_s)

    def _note_damage(self, exc: StoreCorrupt) -> None:
        """Refuse writes to damaged data for a while; the next write after that tries again."""
        if self._damage is None:
            warn(__name__, "%s", exc)
        self._damage, self._damage_until = exc, time.monotonic() + DAMAGE_PAUSE_S

    def _require_same_file(self) -> None:
        """Raise FileReplaced if another file is at the path: no other process would see what is written to this one."""
        if self._identity is not None and _identity_of(self._path_text) != self._identity:
            raise FileReplaced(f"{self.path} has been moved, removed or replaced while it was open")

    def _require_no_swap(self) -> None:
        """Also raise FileReplaced while another process (even a dead one) is swapping the file."""
        self._require_same_file()
        if os.access(self._replacement, os.F_OK):
            raise FileReplaced(f"{self.path} is being replaced")

    def _after_commit(self, view: View) -> None:
        """Index and checkpoint after a commit, while the writer lock is still held."""
        try:
            self._index_and_checkpoint(view)
        except Exception as exc:  # noqa: BLE001 - the commit is done; its caller must not get this error
            warn(__name__, "indexing or checkpointing %s failed and will be tried again: %s", self.path, exc)

    def _index_and_checkpoint(self, view: View) -> None:
        if self._indexer is not None:
            self._indexer.after_commit(view)
        self._commits += 1
        if self._log_identity is None:
            self._log_identity = _identity_of(self._log)
        if self._commits % CHECKPOINT_EVERY_N_WRITES == 0:
            self._checkpoint(view)

    def _checkpoint(self, view: View) -> None:
        try:
            _, pages, _ = view.rows("PRAGMA wal_checkpoint(PASSIVE)")[0]
            if pages > WAL_LIMIT_PAGES:
                self._truncate(view.connection)
        except apsw.Error as exc:
            # Nothing depends on this checkpoint; the next one tries again.
            inform(__name__, "checkpoint of %s postponed: %s", self.path, exc)

    def _truncate(self, connection: apsw.Connection) -> None:
        """Empty the WAL if no reader uses it. Without a busy timeout, which would block every writer."""
        connection.set_busy_timeout(0)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    def heal_index(self, epoch: int) -> None:
        """Rebuild the search index in the background, unless another process has done so since `epoch`."""
        if self._indexer is not None:
            self._indexer.heal(epoch)

    def catch_up(self, timeout_s: float) -> None:
        """Index all waiting messages now, unless the file is read-only."""
        if self._indexer is not None:
            self._indexer.index_all(timeout_s)

    def this_thread_uses_it(self) -> bool:
        """Whether this thread is in the middle of a read or a write."""
        return getattr(self._active, "view", None) is not None or (
            self.writer is not None and self.writer.this_thread_leads()
        )

    def can_close_soon(self) -> bool:
        """Whether all reads and writes end soon, so that a fork can wait for them."""
        if self.this_thread_uses_it() or not self.readers.become_idle_within(FORK_PATIENCE_S):
            return False
        return self.writer is None or self.writer.becomes_idle_within(FORK_PATIENCE_S)

    def close(self) -> None:
        """Finish indexing and empty the WAL if no other process writes, then close everything."""
        if self._indexer is not None:
            self._indexer.stop()
        self.readers.close()
        if self.writer is None:
            return
        assert self.lock is not None
        if self.writer.close(self._finish):
            self.lock.close()
        if not self._is_finished:
            # Another process writes, or swaps the file: the files beside the path are its business.
            close_keeping_files(self.writer.view.connection)

    def abandon(self) -> None:
        """Close everything without touching the files at the path, which belong to another database now."""
        if self._indexer is not None:
            self._indexer.stop()
        if self.writer is not None and self.lock is not None:
            if self.writer.close(self._keep_orphaned_log):
                self.lock.close()
            close_keeping_files(self.writer.view.connection)
        self.readers.close(keep_files=True)

    def _keep_orphaned_log(self, _: View) -> None:
        """Move our log away while it is still open: only then can its inode not belong to a new file."""
        if self._log_identity is not None and _identity_of(self._log) == self._log_identity:
            keep_orphaned_log(real_file(self.path))

    def _finish(self, view: View) -> None:
        with contextlib.suppress(FileReplaced):
            self._require_no_swap()
            self._tidy(view)
            # While the lock is held: the last connection to close removes the log by its name.
            view.connection.close()
            self._is_finished = True

    def _tidy(self, view: View) -> None:
        if self._indexer is not None:
            self._indexer.finish(view)
        with contextlib.suppress(apsw.Error):  # a reader in another process uses the WAL; the next close empties it
            self._truncate(view.connection)


def _identity_of(path: Path | str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
