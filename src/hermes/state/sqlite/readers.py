"""A small pool of connections that only read."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import apsw

from hermes.errors import StoreClosed
from hermes.state.sqlite.connection import View, close_leaving

MAX_IDLE = 4
CLOSE_PATIENCE_S = 10.0


class Readers:
    """Lends read-only views, one to each reader, and keeps at most `MAX_IDLE` of them open."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        # A plain lock around plain lists: an interrupt at any point loses a connection at worst, never the way in.
        self._lock = threading.Lock()
        self._idle: list[View] = []
        self._lent: list[View | None] = []
        self._closed = False

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[View]:
        """A view that shows one moment of the store for as long as it is held."""
        view = self._take()
        try:
            view.run("BEGIN")
            yield view
            # An index so damaged that SQLite ran out of memory over it has ended the transaction already.
            if view.connection.in_transaction:
                view.run("ROLLBACK")
        finally:
            self._give_back(view)

    def are_unused_within(self, timeout_s: float) -> bool:
        """Whether a moment comes soon at which nobody is reading."""
        deadline = time.monotonic() + timeout_s
        while self._lent and time.monotonic() < deadline:
            time.sleep(0.001)
        return not self._lent

    def close(self, *, leaving: bool = False) -> None:
        """Close every connection, those that are lent when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for view in idle:
            if leaving:
                close_leaving(view.connection)
            else:
                view.connection.close()
        self.are_unused_within(CLOSE_PATIENCE_S)

    def _take(self) -> View:
        with self._lock:
            if self._closed:
                raise StoreClosed
            view = self._idle.pop() if self._idle else None
            # Counted as lent from here on: a fork must wait for a connection that is being opened, too.
            self._lent.append(view)
        if view is not None:
            return view
        try:
            view = View(self._connect())
        except BaseException:
            self._forget(None)
            raise
        with self._lock:
            self._lent.remove(None)
            self._lent.append(view)
        return view

    def _give_back(self, view: View) -> None:
        # A read that was interrupted or failed leaves its transaction open: that connection is not lent again.
        is_sound = not view.connection.in_transaction
        with self._lock:
            keep = is_sound and not self._closed and len(self._idle) < MAX_IDLE
            if keep:
                self._idle.append(view)
        if not keep:
            view.connection.close()
        # Only now: nobody may fork while a connection is being closed.
        self._forget(view)

    def _forget(self, view: View | None) -> None:
        with self._lock:
            if view in self._lent:
                self._lent.remove(view)
