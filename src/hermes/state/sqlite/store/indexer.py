"""Indexes messages after they are stored, in the pauses between writes.

An append only notes that a message waits. A background thread indexes when enough messages wait and none has come for
a moment. It works in slices and stops as soon as a caller or another process wants to write, so that no writer waits
for it for long. If messages come without a pause, the calls that store them pay: beyond a limit, each one indexes a
slice. A process that ends leaves a few messages to the next one; a search reads them directly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from hermes.errors import StoreBusy, StoreError
from hermes.log import warn
from hermes.state.engine import CATCH_UP, IndexDamaged
from hermes.state.indexing.background_worker import BackgroundWorker
from hermes.state.sqlite.connection import BUSY_TIMEOUT_MS, View
from hermes.state.sqlite.schema import inspection
from hermes.state.sqlite.schema.definitions import schema_sql
from hermes.state.sqlite.search import index_state, rebuild
from hermes.state.sqlite.store.writer import Writer

Read = Callable[[Callable[[View], bool]], bool]

PAUSE_S = 0.05
"""So long no message has come when a pause begins."""
MANY = 8_000
"""With so many waiting messages, the calls that store further ones index too."""
SLICE = 32
"""How many messages a call indexes that pays, and how many a background slice indexes before it looks for writers."""
FEW = index_state.DUE
"""A process that closes the file leaves fewer messages than this to the next one."""
CLOSE_S = 0.05
"""How long closing a file may spend on messages that wait."""
TURN_S = 1.0
"""How long the background thread waits for its turn to write."""


class Indexer:
    """Keeps the search index of one open file close behind its messages."""

    def __init__(self, path: Path, writer: Writer, read: Read, *, newest_message: int, indexed_upto: int) -> None:
        self._path, self._writer, self._read = path, writer, read
        self._newest, self._indexed_upto = newest_message, indexed_upto
        """The newest message of this process, and the mark of the index when this process last read it."""
        self._last_commit = 0.0
        self._is_urgent = False
        """Whether there is no waiting for a pause: a search had to read too many messages, or the index is new."""
        self._damaged_epoch: int | None = None
        self._is_rebuilding = False
        self._closing = threading.Event()
        self._worker = BackgroundWorker(self._index_when_quiet, "hermes-index")
        if newest_message - indexed_upto > index_state.BATCH:
            self.catch_up()

    def after_commit(self, view: View) -> None:
        """Note new messages, while the writer lock is still held; index a slice if too many wait."""
        added, self._newest = view.newest_message - self._newest, view.newest_message
        self._last_commit = time.monotonic()
        waiting = self._newest - self._indexed_upto
        if added <= 0 or waiting < index_state.DUE:
            return
        if waiting >= MANY:
            self._pay(view, added)
        self._worker.wake()

    def heal(self, epoch: int) -> None:
        """Rebuild a damaged index in the background, unless another process has done so since; or only catch up."""
        self._damaged_epoch = None if epoch == CATCH_UP else epoch
        self.catch_up()

    def catch_up(self) -> None:
        """Index all waiting messages in the background, without waiting for a pause."""
        self._is_urgent = True
        self._worker.wake()

    def index_all(self, timeout_s: float) -> None:
        """Index all waiting messages now."""
        while self._writer.write(lambda view: _index_batch(view, index_state.BATCH), timeout_s):
            pass

    def restart_damaged_index(self, timeout_s: float) -> bool:
        """Empty the index if it is damaged, and start rebuilding it; False if that is not possible."""
        try:
            epoch = self._writer.write(index_state.epoch, timeout_s)
            try:
                self._writer.write(rebuild.check, timeout_s)
            except IndexDamaged:
                if self._empty(epoch, timeout_s):
                    self.catch_up()
        except StoreError:
            return False  # more than the index is damaged; the caller gets the first error
        # An index that is whole now may have been restarted by another process meanwhile.
        return True

    def stop(self) -> None:
        """Stop the background work after its current slice."""
        self._closing.set()
        self._worker.close()

    def finish(self, view: View) -> None:
        """Index waiting messages for a moment before the file is closed; the lock is held."""
        self._indexed_upto = index_state.indexed_upto(view)
        deadline = time.monotonic() + CLOSE_S
        while self._newest - self._indexed_upto >= FEW or index_state.has_stale(view):
            if time.monotonic() > deadline or self._index_slice(view, SLICE) == 0:
                return

    def _pay(self, view: View, added: int) -> None:
        """Index twice as many messages as were just added, at least a slice, so that those that wait become fewer."""
        # Another process may have indexed since this one looked, or have restarted the index.
        self._indexed_upto = index_state.indexed_upto(view)
        owed = max(SLICE, 2 * added)
        while owed > 0 and self._newest - self._indexed_upto >= MANY:
            done = self._index_slice(view, SLICE)
            if done == 0 or self._writer.is_wanted():
                return
            owed -= done

    def _index_when_quiet(self) -> bool:
        """Wait for a pause, then index a slice or merge a part of the index; return whether there is more to do."""
        epoch = self._damaged_epoch
        if epoch is not None:
            if self._empty(epoch, TURN_S):
                warn(
                    __name__,
                    "the search index of %s is damaged and is being rebuilt; no message is affected",
                    self._path,
                )
                self._is_rebuilding = True
            self._damaged_epoch = None
        while not self._is_urgent and not self._closing.is_set() and self._is_busy():
            self._closing.wait(PAUSE_S)
        if self._closing.is_set():
            return False
        done = self._run_slice()
        if done is None:
            self._closing.wait(PAUSE_S / 10)  # another process is writing, or a caller of this one
            return True
        if done > 0:
            return True
        self._is_urgent = False
        if self._is_rebuilding:
            self._is_rebuilding = False
            if self._read(rebuild.lacks_messages):
                warn(__name__, "the search index of %s is not complete after it was rebuilt", self._path)
        return self._merge_in_pause()

    def _is_busy(self) -> bool:
        return time.monotonic() - self._last_commit < PAUSE_S

    def _run_slice(self) -> int | None:
        """Index a slice, and return how many messages it had; None if there was no chance to write."""
        counts: list[int] = []
        if self._writer.run_when_idle(lambda view: counts.append(self._index_slice(view, index_state.BATCH))):
            return counts[0]
        if not self._is_urgent:
            return None
        # Writers leave no pause, but a search needs the index: take turns with them.
        try:
            return self._writer.write(lambda view: _index_batch(view, SLICE), TURN_S)
        except StoreBusy:
            return None

    def _merge_in_pause(self) -> bool:
        """Merge a part of the index; return whether there is more to merge and no writer waits."""
        has_more: list[bool] = []

        def merge_part(view: View) -> None:
            if _begin(view):
                try:
                    has_more.append(_merge(view))
                    view.run("COMMIT")
                finally:
                    if view.connection.in_transaction:
                        view.run("ROLLBACK")

        self._writer.run_when_idle(merge_part)
        return has_more == [True] and not self._is_busy()

    def _index_slice(self, view: View, limit: int) -> int:
        """Index some messages in a transaction of their own, so that a failure does not affect stored messages."""
        if not _begin(view):
            return 0
        try:
            done = _index_batch(view, limit, self._writer)
            self._indexed_upto = index_state.indexed_upto(view)
            view.run("COMMIT")
        except Exception as exc:  # noqa: BLE001 - the messages are stored even if indexing a row fails
            warn(__name__, "new messages of %s could not be indexed: %s", self._path, exc)
            if view.connection.in_transaction:
                view.run("ROLLBACK")
            # Try again after another batch, not at every message.
            self._indexed_upto = self._newest
            return 0
        return done

    def _empty(self, epoch: int, timeout_s: float) -> bool:
        """Empty the index, unless another process has done so since `epoch`."""
        was_emptied = self._writer.write(lambda view: rebuild.empty_indexes(view, epoch, schema_sql()), timeout_s)
        if was_emptied:
            self._writer.write(inspection.store_schema_cookie, timeout_s)
        return was_emptied


def _begin(view: View) -> bool:
    """Begin a transaction, unless a program that does not use the lock is writing: callers must not wait for it."""
    view.connection.set_busy_timeout(0)
    try:
        view.run("BEGIN IMMEDIATE")
    except apsw.BusyError:
        return False
    finally:
        view.connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return True


def _index_batch(view: View, limit: int, writer: Writer | None = None) -> int:
    # Imported late: most commands never index.
    from hermes.state.sqlite.search.indexing import index_batch

    return index_batch(view, limit, step=SLICE, stop=None if writer is None else writer.is_wanted)


def _merge(view: View) -> bool:
    from hermes.state.sqlite.search.indexing import merge

    return merge(view)
