"""An SQLite file while it is in use: its writer, its readers, its index and its log."""

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
from hermes.state.engine import IndexDamaged
from hermes.state.sqlite import fulltext, rebuild, schema
from hermes.state.sqlite.connection import View, close_leaving, has_moved, open_reader
from hermes.state.sqlite.faults import FileReplaced, is_busy, translate
from hermes.state.sqlite.files import LOG, beside, real_file, set_log_aside
from hermes.state.sqlite.lock import WriterLock
from hermes.state.sqlite.place import free_bytes
from hermes.state.sqlite.readers import Readers
from hermes.state.sqlite.reading import reader_factory
from hermes.state.sqlite.upkeep import exchange
from hermes.state.sqlite.writer import Writer

T = TypeVar("T")

CHECKPOINT_EVERY_N_WRITES = 50
WAL_LIMIT_PAGES = 16_384
READ_BUDGET_S = 10.0
FORK_PATIENCE_S = 5.0
CLOSE_BATCHES = 16
DAMAGE_PAUSE_S = 5.0
LITTLE_ROOM_BYTES = 100 * 1024 * 1024
BACKLOG = 8 * fulltext.BATCH
"""More unindexed messages than this are indexed in the background."""


class Store:
    """The connections to one file, and the upkeep that goes with writing."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.lock: WriterLock | None = None
        self.writer: Writer | None = None
        self._commits = 0
        self._indexed_upto = 0
        self._newest_seen = 0
        self._active = threading.local()
        self._backfill: threading.Thread | None = None
        self._backfill_lock = threading.Lock()
        self._closing = False
        self._is_finished = False
        # Before the file is opened, to tell whether another one is put in its place meanwhile.
        self._identity = _identity_of(path)
        self._next = exchange.next_of(path)
        self._damage: StoreCorrupt | None = None
        self._damage_until = 0.0
        self._log = beside(real_file(path), LOG)
        self._log_identity: tuple[int, int] | None = None
        try:
            opened = schema.open_for_writing(path) if writable else None
            self._identity = _identity_of(path)
            if opened is not None:
                # The number alone does not tell: that of a file that is gone is given to the next one.
                if has_moved(opened.connection):
                    close_leaving(opened.connection)
                    opened.lock.close()
                    raise FileReplaced(f"{path} was replaced while it was being opened")
                self.lock = opened.lock
                self.writer = Writer(
                    opened.connection,
                    opened.lock,
                    translate=self.translate,
                    confirm=self._confirm_turn,
                    after_commit=self._after_commit,
                )
                self._active = self.writer.active
                self.writer.view.added_message(opened.newest_message)
                self._newest_seen = opened.newest_message
                self._indexed_upto = opened.indexed_upto
                self.readers = Readers(lambda: open_reader(path))
                self._look_for_room()
                if opened.newest_message - opened.indexed_upto > fulltext.BATCH:
                    self._start_backfill(self._index_backlog)
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

    def _look_for_room(self) -> None:
        """Say it while there is still time when the disk is nearly full."""
        free = free_bytes(self.path)
        if free is not None and free < LITTLE_ROOM_BYTES:
            warn(__name__, "only %d MB are left on the disk of %s: make room", free >> 20, self.path)

    def translate(self, exc: apsw.Error) -> HermesError:
        """An SQLite error as one of ours."""
        return translate(exc, self.path)

    def read(self, work: Callable[[View], T]) -> T:
        """Run `work` on a snapshot, or inside the transaction that this thread is in."""
        view = getattr(self._active, "view", None)
        if view is not None:
            return work(view)
        self._confirm_file()
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
                self._confirm_turn()  # perhaps all that is wrong is that another file is there by now
                # Only somebody recovering or resetting the WAL makes a reader wait.
                if not is_busy(exc) or time.monotonic() > deadline:
                    raise self.translate(exc) from exc

    def write(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Run `work` in a durable transaction, or as part of the one that this thread is in."""
        if self.writer is None:
            raise StoreReadOnly(f"{self.path} was opened for reading only", hint=schema.read_only_hint(self.path))
        if getattr(self._active, "view", None) is self.writer.view:
            return work(self.writer.view)
        if self._damage is not None and time.monotonic() < self._damage_until:
            self._confirm_file()  # perhaps it has been repaired
            raise StoreCorrupt(self._damage.message, hint=self._damage.hint)
        try:
            return self._write_past_index(work, timeout_s)
        except StoreCorrupt as exc:
            self._note_damage(exc)
            raise

    def _write_past_index(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Write; a damaged index, from which a deleted message is deleted too, must not keep it alive."""
        assert self.writer is not None
        try:
            return self.writer.write(work, timeout_s)
        except StoreError as exc:
            may_be_the_index = type(exc) in (StoreError, StoreCorrupt, StoreUnavailable)
            if not may_be_the_index or not self._start_index_over(timeout_s):
                raise
        return self.writer.write(work, timeout_s)

    def _note_damage(self, exc: StoreCorrupt) -> None:
        """Leave damaged data alone for a while; the next write after that tries again."""
        if self._damage is None:
            warn(__name__, "%s", exc)
        self._damage, self._damage_until = exc, time.monotonic() + DAMAGE_PAUSE_S

    def _start_index_over(self, timeout_s: float) -> bool:
        """Empty the index if it is damaged, and have it rebuilt; False if that is not possible."""
        assert self.writer is not None
        try:
            epoch = self.writer.write(fulltext.epoch, timeout_s)
            try:
                self.writer.write(rebuild.check, timeout_s)
            except IndexDamaged:
                if self.writer.write(lambda view: rebuild.start_over(view, epoch), timeout_s):
                    self.writer.write(schema.note_cookie, timeout_s)
                    self._start_backfill(self._index_backlog)
        except StoreError:
            return False  # the index is not all that is damaged; what was wrong at first is what the caller hears
        # An index that is whole may have been started over by somebody else meanwhile.
        return True

    def _confirm_file(self) -> None:
        """Refuse to go on with a file that is not at its path any more: nobody else would ever see what it gets."""
        if self._identity is not None and _identity_of(self.path) != self._identity:
            raise FileReplaced(f"{self.path} has been moved, removed or replaced while it was open")

    def _confirm_turn(self) -> None:
        """Refuse, too, to go on with a file in whose place somebody, who may have died, is putting another one."""
        self._confirm_file()
        if os.access(self._next, os.F_OK):
            raise FileReplaced(f"{self.path} is being replaced")

    def _after_commit(self, view: View) -> None:
        """With the lock still held: feed the index, and move the WAL into the database now and then."""
        try:
            self._keep_up(view)
        except Exception as exc:  # noqa: BLE001 - what was stored is stored, whatever happens after it
            warn(__name__, "the upkeep of %s will be tried again: %s", self.path, exc)

    def _keep_up(self, view: View) -> None:
        added, self._newest_seen = view.newest_message - self._newest_seen, view.newest_message
        for _ in range(added // fulltext.BATCH + 1):
            if not self._is_batch_due(view):
                break
            self._index(view)
        self._commits += 1
        if self._log_identity is None:
            self._log_identity = _identity_of(self._log)
        if self._commits % CHECKPOINT_EVERY_N_WRITES == 0:
            self._checkpoint(view)

    def _is_batch_due(self, view: View) -> bool:
        if view.newest_message - self._indexed_upto < fulltext.DUE:
            return False
        # Another process may have been here since this one looked, or have started the index over.
        self._indexed_upto = fulltext.indexed_upto(view)
        waiting = view.newest_message - self._indexed_upto
        if waiting > BACKLOG:
            self._start_backfill(self._index_backlog)
        return waiting >= fulltext.DUE

    def _index(self, view: View) -> int:
        """Index one batch in a transaction of its own: its failure must not fail what was stored."""
        try:
            view.run("BEGIN IMMEDIATE")
            done = _index_batch(view)
            self._indexed_upto = fulltext.indexed_upto(view)
            view.run("COMMIT")
        except Exception as exc:  # noqa: BLE001 - whatever an odd row does to the index, its message is stored
            warn(__name__, "the search index of %s could not be brought up to date: %s", self.path, exc)
            if view.connection.in_transaction:
                view.run("ROLLBACK")
            # Try again after another batch, not at every message.
            self._indexed_upto = view.newest_message
            return 0
        return done

    def _checkpoint(self, view: View) -> None:
        try:
            _, pages, _ = view.rows("PRAGMA wal_checkpoint(PASSIVE)")[0]
            if pages > WAL_LIMIT_PAGES:
                self._truncate(view.connection)
        except apsw.Error as exc:
            # The next one gets another chance; nothing depends on this one.
            inform(__name__, "checkpoint of %s put off: %s", self.path, exc)

    def _truncate(self, connection: apsw.Connection) -> None:
        """Empty the WAL file if no reader is in the way; with a busy timeout it would stall everybody."""
        connection.set_busy_timeout(0)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.set_busy_timeout(1000)

    def heal_index(self, epoch: int) -> None:
        """Rebuild the search index in the background, unless somebody has since `epoch`."""
        if self.writer is not None and not self._closing:
            self._start_backfill(lambda: self._rebuild_index(epoch))

    def _start_backfill(self, work: Callable[[], None]) -> None:
        with self._backfill_lock:
            if self._backfill is None or not self._backfill.is_alive():
                self._backfill = threading.Thread(
                    target=self._in_background, args=(work,), name="hermes-index", daemon=True
                )
                self._backfill.start()

    def _in_background(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as exc:  # noqa: BLE001 - a thread has nobody else to tell
            if not self._closing:
                warn(__name__, "indexing %s will go on at the next open: %s", self.path, exc)

    def _rebuild_index(self, epoch: int) -> None:
        assert self.writer is not None
        if self.writer.write(lambda view: rebuild.start_over(view, epoch), READ_BUDGET_S):
            warn(__name__, "the search index of %s is damaged and is being rebuilt; no message is affected", self.path)
            self.writer.write(schema.note_cookie, READ_BUDGET_S)
        self._index_backlog()
        if not self._closing and self.read(rebuild.lacks_messages):
            warn(__name__, "the search index of %s is not complete after it was rebuilt", self.path)

    def _index_backlog(self) -> None:
        """Index what is there, in slices between which others can write."""
        while not self._closing and self.writer is not None:
            if self.writer.write(_index_batch, READ_BUDGET_S) == 0:
                return

    def is_used_here(self) -> bool:
        """Whether this thread is in the middle of a read or a write."""
        return getattr(self._active, "view", None) is not None or (
            self.writer is not None and self.writer.is_led_here()
        )

    def can_close_soon(self) -> bool:
        """Whether nobody is, or will be for long, in the middle of a read or a write."""
        if self.is_used_here() or not self.readers.are_unused_within(FORK_PATIENCE_S):
            return False
        return self.writer is None or self.writer.is_unused_within(FORK_PATIENCE_S)

    def close(self) -> None:
        """Finish the index and the WAL if nobody else is busy, then close everything."""
        self._closing = True
        if self._backfill is not None and self._backfill is not threading.current_thread():
            self._backfill.join()
        self.readers.close()
        if self.writer is None:
            return
        assert self.lock is not None
        if self.writer.close(self._finish):
            self.lock.close()
        if not self._is_finished:
            # Somebody else writes, or puts another file here: what lies beside the path is theirs to tidy.
            close_leaving(self.writer.view.connection)

    def abandon(self) -> None:
        """Close everything and leave the path alone: its log belongs to another file now."""
        self._closing = True
        if self._backfill is not None and self._backfill is not threading.current_thread():
            self._backfill.join()
        if self.writer is not None and self.lock is not None:
            if self.writer.close(self._set_log_aside):
                self.lock.close()
            close_leaving(self.writer.view.connection)
        self.readers.close(leaving=True)

    def _set_log_aside(self, _: View) -> None:
        """With the lock held, and the log still open: the number of a file that nobody has is given to the next one."""
        if self._log_identity is not None and _identity_of(self._log) == self._log_identity:
            set_log_aside(real_file(self.path))

    def _finish(self, view: View) -> None:
        with contextlib.suppress(FileReplaced):
            self._confirm_turn()
            self._tidy(view)
            # With the lock still held: the last one to close a file removes its log, by name.
            view.connection.close()
            self._is_finished = True

    def _tidy(self, view: View) -> None:
        for _ in range(CLOSE_BATCHES):
            if self._index(view) == 0:
                break
        with contextlib.suppress(apsw.Error):  # a reader elsewhere keeps the WAL: it will be emptied by the next one
            self._truncate(view.connection)


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _index_batch(view: View) -> int:
    # What a word is, is not needed by those who only read or write a little.
    from hermes.state.sqlite.filling import index_batch

    return index_batch(view)
