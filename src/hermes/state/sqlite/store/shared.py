"""One open file per process and path, shared by every handle in the process, and safe across forks.

Handles must share it: two writers in one process would compete for the file, and closing any descriptor of the file
drops the locks that SQLite holds on it.
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
from hermes.state.sqlite.errors import FileReplaced
from hermes.state.sqlite.store.open_file import OpenFile

T = TypeVar("T")


class SharedFile:
    """A file's connections and locks, opened on first use, and again after a fork."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.users = 0
        self._wants_write = not read_only
        self._opening = threading.Lock()
        self._file: OpenFile | None = None
        self._is_closed = False
        self._is_orphaned = False

    @property
    def read_only(self) -> bool:
        """Whether the file can only be read: by request, or because it belongs to another program."""
        return self.file().writer is None

    def file(self) -> OpenFile:
        """Return the open file; open it if it is not."""
        file = self._file
        if file is None:
            with self._opening:
                if self._is_closed:
                    raise StoreClosed
                if self._is_orphaned:
                    raise StoreUnavailable(
                        f"this process was forked in the middle of a write to {self.path}",
                        hint="fork when nothing is being written, or start a new process",
                    )
                while self._file is None:
                    with suppress(FileReplaced):  # replaced while it was being opened: open the new one
                        self._file = OpenFile(self.path, writable=self._wants_write)
                file = self._file
        return file

    def read(self, work: Callable[[View], T]) -> T:
        """Run `work` on a snapshot of the file."""
        while True:
            file = self.file()
            try:
                return file.read(work)
            except StoreClosed:
                if file is self._file:
                    raise
            except FileReplaced:
                self._drop_replaced_file(file)

    def write(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Run `work` in a durable transaction."""
        while True:
            file = self.file()
            try:
                return file.write(work, timeout_s)
            except StoreClosed:
                # Closed for a fork before this write began: nothing was done yet.
                if file is self._file:
                    raise
            except FileReplaced:
                self._drop_replaced_file(file)

    def _drop_replaced_file(self, file: OpenFile) -> None:
        """Drop a file that is no longer at its path; only the first thread that notices does this."""
        with self._opening:
            if self._file is not file:
                return
            self._file = None
        warn(
            __name__, "%s was moved, removed or replaced while it was open; using the file that is there now", self.path
        )
        file.abandon()

    def close(self) -> None:
        """Close the connections. The last process to close the file empties its log."""
        with self._opening:
            self._is_closed = True
            file, self._file = self._file, None
        _close(file)

    def close_until_needed(self) -> None:
        """Close the connections; the next read or write opens them again."""
        with self._opening:
            file, self._file = self._file, None
        _close(file)

    def before_fork(self) -> None:
        """Close everything, and block opening until the fork is done.

        SQLite keeps a table of the locks of its process. A child would inherit the table but not the locks, and take a
        file for locked that is not; so the table must be empty when a process forks.
        """
        self._opening.acquire()
        file = self._file
        if file is not None and file.can_close_soon():
            self._file = None
            file.close()

    def after_fork(self, *, in_child: bool) -> None:
        """Allow opening again; a child gets its own locks."""
        if in_child:
            if self._file is not None:
                # Even closing these connections is unsafe here: SQLite's state of the file is wrong for good.
                _unclosed.append(self._file)
                if self._file.lock is not None:
                    self._file.lock.close()  # leaves the parent's lock alone, where unlocking would free it
                self._file = None
                self._is_orphaned = True
            self._opening = threading.Lock()
        else:
            self._opening.release()


_files: dict[str, SharedFile] = {}
_files_lock = threading.RLock()
_unclosed: list[OpenFile] = []
"""Files that must not be closed: inherited ones, and those that a signal handler closes during a write."""


def acquire(path: Path, *, read_only: bool) -> SharedFile:
    """Return the shared file of a path, the same one for every caller in this process."""
    key = f"{os.path.realpath(path)}{'?ro' if read_only else ''}"
    with _files_lock:
        shared = _files.get(key)
        if shared is None:
            shared = _files[key] = SharedFile(path, read_only=read_only)
        shared.users += 1
    try:
        shared.file()
    except BaseException:
        release(shared)
        raise
    return shared


def release(shared: SharedFile) -> None:
    """Give up one use of a shared file; the last user closes it."""
    with _files_lock:
        shared.users -= 1
        if shared.users:
            return
        for key, candidate in list(_files.items()):
            if candidate is shared:
                del _files[key]
    shared.close()


def _close(file: OpenFile | None) -> None:
    if file is None:
        return
    if file.this_thread_uses_it():
        # A signal handler closes the file in the middle of its thread's own write. The write continues; the end of
        # the program, or the next process, does the rest.
        _unclosed.append(file)
    else:
        file.close()


def _close_at_exit() -> None:
    for shared in list(_files.values()):
        shared.close_until_needed()


def _before_fork() -> None:
    _files_lock.acquire()
    for shared in _files.values():
        shared.before_fork()


def _after_fork_in_parent() -> None:
    for shared in _files.values():
        shared.after_fork(in_child=False)
    _files_lock.release()


def _after_fork_in_child() -> None:
    global _files_lock
    for shared in _files.values():
        shared.after_fork(in_child=True)
    _files_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)

atexit.register(_close_at_exit)
