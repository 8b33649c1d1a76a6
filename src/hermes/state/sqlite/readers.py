"""A small pool of connections that only read."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import apsw

from hermes.errors import StoreClosed
from hermes.state.sqlite.connection import View

MAX_READERS = 16
MAX_IDLE = 4


class Readers:
    """Lends read-only views; at most `MAX_READERS` at once, at most `MAX_IDLE` kept open."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._idle: list[View] = []
        self._slots = threading.Semaphore(MAX_READERS)
        self._closed = False

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[View]:
        """A view that shows one moment of the store for as long as it is held."""
        with self._slots:
            if self._closed:
                raise StoreClosed
            view = self._take()
            try:
                view.run("BEGIN")
                try:
                    yield view
                finally:
                    if view.connection.in_transaction:
                        view.run("ROLLBACK")
            except apsw.Error:
                view.connection.close()
                raise
            except BaseException:
                self._give_back(view)
                raise
            self._give_back(view)

    def close(self) -> None:
        """Close every connection, those that are lent when they come back."""
        self._closed = True
        for _ in range(MAX_READERS):
            self._slots.acquire()
        while self._idle:
            self._idle.pop().connection.close()
        self._slots.release(MAX_READERS)

    def _take(self) -> View:
        try:
            return self._idle.pop()
        except IndexError:
            return View(self._connect())

    def _give_back(self, view: View) -> None:
        if len(self._idle) >= MAX_IDLE:
            view.connection.close()
        else:
            self._idle.append(view)
