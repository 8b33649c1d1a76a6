"""One SQLite file, shared by everybody in this process who opened it.

Sharing matters beyond thrift: two writers in one process would compete for the file, and any descriptor on it that is
closed carelessly drops SQLite's locks.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from hermes.errors import HermesError, StoreClosed, StoreReadOnly, StoreUnavailable
from hermes.log import inform, warn
from hermes.state.sqlite import fulltext, schema
from hermes.state.sqlite.connection import View, open_reader
from hermes.state.sqlite.faults import is_busy, translate
from hermes.state.sqlite.lock import WriterLock
from hermes.state.sqlite.readers import Readers
from hermes.state.sqlite.writer import Writer

T = TypeVar("T")

CHECKPOINT_EVERY_N_WRITES = 50
WAL_LIMIT_PAGES = 16_384
READ_BUDGET_S = 10.0
FORK_PATIENCE_S = 5.0
CLOSE_BATCHES = 16


class SharedStore:
    """A file's connections and locks, opened lazily, and again after a fork."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.users = 0
        self._wants_write = not read_only
        self._opening = threading.Lock()
        self._parts: Parts | None = None
        self._is_closed = False
        self._is_orphaned = False

    @property
    def read_only(self) -> bool:
        """Whether this store can only be read: asked for, or because another program owns the file."""
        return self.parts().writer is None

    def parts(self) -> Parts:
        """The connections, opened now if they are not."""
        parts = self._parts
        if parts is None:
            with self._opening:
                if self._is_closed:
                    raise StoreClosed
                if self._is_orphaned:
                    raise StoreUnavailable(
                        f"this process was forked in the middle of a write to {self.path}",
                        hint="fork when nothing is being written, or start a new process",
                    )
                if self._parts is None:
                    self._parts = Parts(self.path, writable=self._wants_write)
                parts = self._parts
        return parts

    def read(self, work: Callable[[View], T]) -> T:
        """Run `work` on a snapshot of the store."""
        while True:
            parts = self.parts()
            try:
                return parts.read(work)
            except StoreClosed:
                if parts is self._parts:
                    raise

    def write(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Run `work` in a durable transaction."""
        while True:
            parts = self.parts()
            try:
                return parts.write(work, timeout_s)
            except StoreClosed:
                # Closed for a fork while this thread was on its way: nothing was done yet.
                if parts is self._parts:
                    raise

    def close(self) -> None:
        """Close the connections; the last one out tidies the WAL."""
        with self._opening:
            self._is_closed = True
            parts, self._parts = self._parts, None
        if parts is not None:
            parts.close()

    def before_fork(self) -> None:
        """Close everything and let nobody open it until the fork is done.

        SQLite keeps a table of the locks of its process. A child would inherit the table but not the locks, and take a
        file for locked that is not; so there must be nothing in it when a process forks.
        """
        self._opening.acquire()
        parts = self._parts
        if parts is not None and parts.can_close_soon():
            self._parts = None
            parts.close()

    def after_fork(self, *, in_child: bool) -> None:
        """Let everybody go on; a child has locks of its own."""
        if in_child:
            if self._parts is not None:
                # Not even closing these is safe here, and what SQLite believes of the file is wrong for good.
                _abandoned.append(self._parts)
                self._parts = None
                self._is_orphaned = True
            self._opening = threading.Lock()
        else:
            self._opening.release()


class Parts:
    """What is open while a file is in use."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.lock: WriterLock | None = None
        self.writer: Writer | None = None
        self._commits = 0
        self._indexed_upto = 0
        self._newest_seen = 0
        self._active = threading.local()
        self._backfill: threading.Thread | None = None
        self._closing = False
        try:
            opened = schema.open_for_writing(path) if writable else None
            if opened is not None:
                self.lock = opened.lock
                self.writer = Writer(
                    opened.connection,
                    opened.lock,
                    translate=self.translate,
                    after_commit=self._after_commit,
                )
                self._active = self.writer.active
                self.writer.view.added_message(opened.newest_message)
                self._newest_seen = opened.newest_message
                self._indexed_upto = opened.indexed_upto
                self.readers = Readers(lambda: open_reader(path))
                if opened.newest_message - opened.indexed_upto > fulltext.BATCH:
                    self._start_backfill()
            else:
                self.readers = Readers(schema.reader_factory(path))
        except apsw.Error as exc:
            raise self.translate(exc) from exc
        except OSError as exc:
            raise StoreUnavailable(
                f"{path} cannot be opened: {exc.strerror}", hint="check the permissions of the file and its directory"
            ) from exc

    def translate(self, exc: apsw.Error) -> HermesError:
        """An SQLite error as one of ours."""
        return translate(exc, self.path)

    def read(self, work: Callable[[View], T]) -> T:
        """Run `work` on a snapshot, or inside the transaction that this thread is in."""
        view = getattr(self._active, "view", None)
        if view is not None:
            return work(view)
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
                # Only somebody recovering or resetting the WAL makes a reader wait.
                if not is_busy(exc) or time.monotonic() > deadline:
                    raise self.translate(exc) from exc

    def write(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Run `work` in a durable transaction, or as part of the one that this thread is in."""
        if self.writer is None:
            raise StoreReadOnly(f"{self.path} was opened for reading only", hint=schema.read_only_hint(self.path))
        if getattr(self._active, "view", None) is self.writer.view:
            return work(self.writer.view)
        return self.writer.write(work, timeout_s)

    def _after_commit(self, view: View) -> None:
        """With the lock still held: feed the index, and move the WAL into the database now and then."""
        added, self._newest_seen = view.newest_message - self._newest_seen, view.newest_message
        for _ in range(added // fulltext.BATCH + 1):
            if not self._is_batch_due(view):
                break
            self._index(view)
        self._commits += 1
        if self._commits % CHECKPOINT_EVERY_N_WRITES == 0:
            self._checkpoint(view)

    def _is_batch_due(self, view: View) -> bool:
        if view.newest_message - self._indexed_upto < fulltext.BATCH:
            return False
        # Another process may have been here since this one looked.
        self._indexed_upto = max(self._indexed_upto, fulltext.indexed_upto(view))
        return view.newest_message - self._indexed_upto >= fulltext.BATCH

    def _index(self, view: View) -> int:
        """Index one batch in a transaction of its own: its failure must not fail what was stored."""
        try:
            view.run("BEGIN IMMEDIATE")
            done = fulltext.index_batch(view)
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

    def _start_backfill(self) -> None:
        self._backfill = threading.Thread(target=self._index_backlog, name="hermes-index", daemon=True)
        self._backfill.start()

    def _index_backlog(self) -> None:
        """After an upgrade: index what is there, in slices between which others can write."""
        while not self._closing and self.writer is not None:
            try:
                if self.writer.write(fulltext.index_batch, READ_BUDGET_S) == 0:
                    return
            except Exception as exc:  # noqa: BLE001 - a thread has nobody else to tell
                warn(__name__, "indexing %s will go on at the next open: %s", self.path, exc)
                return

    def can_close_soon(self) -> bool:
        """Whether nobody is, or will be for long, in the middle of a read or a write."""
        if getattr(self._active, "view", None) is not None:
            return False
        return self.writer is None or self.writer.is_unused_within(FORK_PATIENCE_S)

    def close(self) -> None:
        """Finish the index and the WAL if nobody else is busy, then close everything."""
        self._closing = True
        if self._backfill is not None:
            self._backfill.join()
        self.readers.close()
        if self.writer is None:
            return
        assert self.lock is not None
        if self.writer.close(self._finish):
            self.lock.close()
        self.writer.view.connection.close()

    def _finish(self, view: View) -> None:
        for _ in range(CLOSE_BATCHES):
            if self._index(view) == 0:
                break
        with contextlib.suppress(apsw.Error):  # a reader elsewhere keeps the WAL: it will be emptied by the next one
            self._truncate(view.connection)


_stores: dict[str, SharedStore] = {}
_stores_lock = threading.RLock()
_abandoned: list[Any] = []


def acquire(path: Path, *, read_only: bool) -> SharedStore:
    """The store for a path; the same one for everybody in this process."""
    key = f"{os.path.realpath(path)}{'?ro' if read_only else ''}"
    with _stores_lock:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = SharedStore(path, read_only=read_only)
        store.users += 1
    try:
        store.parts()
    except BaseException:
        release(store)
        raise
    return store


def release(store: SharedStore) -> None:
    """Give a store back; the last one closes it."""
    with _stores_lock:
        store.users -= 1
        if store.users:
            return
        for key, candidate in list(_stores.items()):
            if candidate is store:
                del _stores[key]
    store.close()


def _before_fork() -> None:
    _stores_lock.acquire()
    for store in _stores.values():
        store.before_fork()


def _after_fork_in_parent() -> None:
    for store in _stores.values():
        store.after_fork(in_child=False)
    _stores_lock.release()


def _after_fork_in_child() -> None:
    global _stores_lock
    for store in _stores.values():
        store.after_fork(in_child=True)
    _stores_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
