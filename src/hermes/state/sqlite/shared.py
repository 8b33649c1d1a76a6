"""One store per process and file, shared by everybody who opened it, and safe across forks.

Sharing matters beyond thrift: two writers in one process would compete for the file, and any descriptor on it that is
closed carelessly drops SQLite's locks.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from hermes.errors import StoreClosed, StoreUnavailable
from hermes.log import warn
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.faults import FileReplaced
from hermes.state.sqlite.store import Store

T = TypeVar("T")


class SharedStore:
    """A file's connections and locks, opened lazily, and again after a fork."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.users = 0
        self._wants_write = not read_only
        self._opening = threading.Lock()
        self._store: Store | None = None
        self._is_closed = False
        self._is_orphaned = False

    @property
    def read_only(self) -> bool:
        """Whether this store can only be read: asked for, or because another program owns the file."""
        return self.opened().writer is None

    def opened(self) -> Store:
        """The connections, opened now if they are not."""
        store = self._store
        if store is None:
            with self._opening:
                if self._is_closed:
                    raise StoreClosed
                if self._is_orphaned:
                    raise StoreUnavailable(
                        f"this process was forked in the middle of a write to {self.path}",
                        hint="fork when nothing is being written, or start a new process",
                    )
                while self._store is None:
                    with suppress(FileReplaced):  # then again, with what is there now
                        self._store = Store(self.path, writable=self._wants_write)
                store = self._store
        return store

    def read(self, work: Callable[[View], T]) -> T:
        """Run `work` on a snapshot of the store."""
        while True:
            store = self.opened()
            try:
                return store.read(work)
            except StoreClosed:
                if store is self._store:
                    raise
            except FileReplaced:
                self._open_anew(store)

    def write(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Run `work` in a durable transaction."""
        while True:
            store = self.opened()
            try:
                return store.write(work, timeout_s)
            except StoreClosed:
                # Closed for a fork while this thread was on its way: nothing was done yet.
                if store is self._store:
                    raise
            except FileReplaced:
                self._open_anew(store)

    def _open_anew(self, store: Store) -> None:
        """Give up a file that is not at its path any more, once for all who notice."""
        with self._opening:
            if self._store is not store:
                return
            self._store = None
        warn(
            __name__, "%s was moved, removed or replaced while it was open; going on with what is there now", self.path
        )
        store.abandon()

    def close(self) -> None:
        """Close the connections; the last one out tidies the WAL."""
        with self._opening:
            self._is_closed = True
            store, self._store = self._store, None
        _close(store)

    def close_for_now(self) -> None:
        """Close the connections; whoever still needs the store opens it again."""
        with self._opening:
            store, self._store = self._store, None
        _close(store)

    def before_fork(self) -> None:
        """Close everything and let nobody open it until the fork is done.

        SQLite keeps a table of the locks of its process. A child would inherit the table but not the locks, and take a
        file for locked that is not; so there must be nothing in it when a process forks.
        """
        self._opening.acquire()
        store = self._store
        if store is not None and store.can_close_soon():
            self._store = None
            store.close()

    def after_fork(self, *, in_child: bool) -> None:
        """Let everybody go on; a child has locks of its own."""
        if in_child:
            if self._store is not None:
                # Not even closing these is safe here, and what SQLite believes of the file is wrong for good.
                _kept.append(self._store)
                if self._store.lock is not None:
                    self._store.lock.close()  # leaves the parent's lock alone, where unlocking would free it
                self._store = None
                self._is_orphaned = True
            self._opening = threading.Lock()
        else:
            self._opening.release()


_stores: dict[str, SharedStore] = {}
_stores_lock = threading.RLock()
_kept: list[Store] = []
"""Stores that cannot be closed where they are given up: inherited ones, and those that a signal handler closes."""


def acquire(path: Path, *, read_only: bool) -> SharedStore:
    """The store for a path; the same one for everybody in this process."""
    key = f"{os.path.realpath(path)}{'?ro' if read_only else ''}"
    with _stores_lock:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = SharedStore(path, read_only=read_only)
        store.users += 1
    try:
        store.opened()
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


def _close(store: Store | None) -> None:
    if store is None:
        return
    if store.is_used_here():
        # A signal handler closes the store in the middle of its thread's own write. That goes on; the program's end,
        # or the next process, does the rest.
        _kept.append(store)
    else:
        store.close()


def _close_at_exit() -> None:
    for store in list(_stores.values()):
        store.close_for_now()


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

atexit.register(_close_at_exit)
