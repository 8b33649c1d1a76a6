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

from hermes.errors import HermesError, StoreReadOnly
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


class SharedStore:
    """A file's connections and locks, opened lazily and again after a fork."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.users = 0
        self._wants_write = not read_only
        self._opening = threading.Lock()
        self._parts: Parts | None = None

    @property
    def read_only(self) -> bool:
        """Whether this store can only be read: asked for, or because another program owns the file."""
        return self.parts().writer is None

    def parts(self) -> Parts:
        """The connections, opened now if they are not."""
        if self._parts is None:
            with self._opening:
                if self._parts is None:
                    self._parts = Parts(self.path, writable=self._wants_write)
        return self._parts

    def close(self) -> None:
        """Close the connections; the last one out tidies the WAL."""
        with self._opening:
            parts, self._parts = self._parts, None
        if parts is not None:
            parts.close()

    def abandon(self) -> None:
        """In a forked child: forget the parent's connections without touching them."""
        if self._parts is not None:
            _abandoned.append(self._parts)
            if self._parts.lock is not None:
                self._parts.lock.close()
        self._parts = None
        self._opening = threading.Lock()


class Parts:
    """What is open while a file is in use."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.lock: WriterLock | None = None
        self.writer: Writer | None = None
        self._commits = 0
        self._indexed_upto = 0
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
                self._indexed_upto = opened.indexed_upto
                self.readers = Readers(lambda: open_reader(path))
                if opened.backlog > fulltext.BATCH:
                    self._start_backfill()
            else:
                self.readers = Readers(schema.reader_factory(path))
        except apsw.Error as exc:
            raise self.translate(exc) from exc

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

    def _after_commit(self, view: View, committed: int) -> None:
        """With the lock still held: feed the index, and move the WAL into the database now and then."""
        if view.newest_message - self._indexed_upto >= fulltext.BATCH:
            self._index(view)
        before, self._commits = self._commits, self._commits + committed
        if before // CHECKPOINT_EVERY_N_WRITES != self._commits // CHECKPOINT_EVERY_N_WRITES:
            self._checkpoint(view)

    def _index(self, view: View) -> int:
        """Index one batch in a transaction of its own: its failure must not fail what was stored."""
        try:
            view.run("BEGIN IMMEDIATE")
            done = fulltext.index_batch(view)
            self._indexed_upto = fulltext.indexed_upto(view)
            view.run("COMMIT")
        except apsw.Error as exc:
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
            except HermesError as exc:
                warn(__name__, "indexing %s will go on at the next open: %s", self.path, exc)
                return

    def close(self) -> None:
        """Finish the index and the WAL if nobody else is busy, then close everything."""
        self._closing = True
        if self._backfill is not None:
            self._backfill.join()
        self.readers.close()
        if self.writer is None:
            return
        self.writer.close(self._finish)
        self.writer.view.connection.close()
        if self.lock is not None:
            self.lock.close()

    def _finish(self, view: View) -> None:
        if view.newest_message > self._indexed_upto:
            self._index(view)
        with contextlib.suppress(apsw.Error):  # a reader elsewhere keeps the WAL: it will be emptied by the next one
            self._truncate(view.connection)


_stores: dict[str, SharedStore] = {}
_stores_lock = threading.Lock()
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


def _after_fork_in_child() -> None:
    global _stores_lock
    _stores_lock = threading.Lock()
    for store in _stores.values():
        store.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
