"""The transaction of the writing connection: one work after the other, committed together."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from hermes.errors import HermesError
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.request import Request

COMMIT_ATTEMPTS = 20
"""How often a commit is tried that readers are in the way of; each attempt waits as long as SQLite is told to."""


class WritingTransaction:
    """Begun, filled and ended by whoever leads."""

    def __init__(self, connection: apsw.Connection, translate: Callable[[apsw.Error], HermesError]) -> None:
        self.view = View(connection)
        self.active = threading.local()
        """Holds the view of the thread that is inside."""
        self._connection = connection
        self._execute = connection.execute
        self._translate = translate

    @property
    def is_open(self) -> bool:
        """Whether it has begun; an error of SQLite may have ended it."""
        return self._connection.in_transaction

    def begin(self) -> None:
        """Begin, or raise if another writer is at it."""
        self._execute("BEGIN IMMEDIATE")

    def run(self, request: Request, *, is_alone: bool, lets_interrupts_out: bool) -> None:
        """Run one work; whatever it raises is its caller's, and undoes what it did and nothing else."""
        outer = getattr(self.active, "view", None)
        self.active.view = self.view
        request.error = request.result = None
        try:
            if not is_alone:
                self._execute("SAVEPOINT work")
            request.result = request.work(self.view)
            if not is_alone:
                self._execute("RELEASE work")
        except BaseException as exc:
            if not isinstance(exc, Exception) and lets_interrupts_out:
                raise  # an interrupt, or the end of this thread: not the work's doing
            request.error = self._translate(exc) if isinstance(exc, apsw.Error) else exc
            if is_alone:
                self.roll_back()
            elif self.is_open:
                self._execute("ROLLBACK TO work")
                self._execute("RELEASE work")
        finally:
            self.active.view = outer

    def commit(self) -> None:
        """Commit; without a WAL, readers keep a writer waiting at its very end."""
        for _ in range(COMMIT_ATTEMPTS):
            try:
                self._execute("COMMIT")
                return
            except apsw.BusyError:
                continue
        self._execute("COMMIT")

    def roll_back(self) -> None:
        """Undo everything, if there is anything."""
        if self.is_open:
            self._execute("ROLLBACK")
