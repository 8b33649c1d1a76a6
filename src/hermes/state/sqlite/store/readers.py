"""A small pool of connections that only read."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import apsw

from hermes.errors import StoreClosed
from hermes.state.sqlite.connection import View, close_keeping_files

MAX_IDLE = 16
CLOSE_PATIENCE_S = 10.0


class Readers:
    """Gives each reader its own read-only view, and keeps at most `MAX_IDLE` unused ones open."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        # A plain lock around plain lists: an interrupt at any point loses a connection at worst, never the pool.
        self._lock = threading.Lock()
        self._idle: list[View] = []
        self._in_use: list[View | None] = []
        self._closed = False

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[View]:
        """Yield a view that shows one moment of the file until it is released."""
        view = self._acquire()
        try:
            view.run("BEGIN")
            yield view
            # An index so damaged that SQLite ran out of memory over it has ended the transaction already.
            if view.connection.in_transaction:
                view.run("ROLLBACK")
        finally:
            self._release(view)

    def become_idle_within(self, timeout_s: float) -> bool:
        """Wait until no read is running; False if that takes longer than `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while self._in_use and time.monotonic() < deadline:
            time.sleep(0.001)
        return not self._in_use

    def close(self, *, keep_files: bool = False) -> None:
        """Close every connection; those in use are closed when they are released."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for view in idle:
            if keep_files:
                close_keeping_files(view.connection)
            else:
                view.connection.close()
        self.become_idle_within(CLOSE_PATIENCE_S)

    def _acquire(self) -> View:
        with self._lock:
            if self._closed:
                raise StoreClosed
            view = self._idle.pop() if self._idle else None
            # Counted as in use from here on: a fork must also wait for a connection that is being opened.
            self._in_use.append(view)
        if view is not None:
            return view
        try:
            view = View(self._connect())
        except BaseException:
            self._forget(None)
            raise
        with self._lock:
            self._in_use.remove(None)
            self._in_use.append(view)
        return view

    def _release(self, view: View) -> None:
        # A read that was interrupted or failed leaves its transaction open: that connection is not used again.
        is_sound = not view.connection.in_transaction
        with self._lock:
            keep = is_sound and not self._closed and len(self._idle) < MAX_IDLE
            if keep:
                self._idle.append(view)
        if not keep:
            view.connection.close()
        # Only now: the process must not fork while a connection is being closed.
        self._forget(view)

    def _forget(self, view: View | None) -> None:
        with self._lock:
            if view in self._in_use:
                self._in_use.remove(view)
