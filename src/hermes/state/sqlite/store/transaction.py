"""The transaction of the writing connection: runs several requests and commits them together."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from hermes.errors import HermesError
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.store.write_request import WriteRequest

COMMIT_ATTEMPTS = 20
"""How often a commit is tried while readers block it; each attempt waits for SQLite's busy timeout."""


class WritingTransaction:
    """The transaction that the leading thread begins, fills and commits."""

    def __init__(self, connection: apsw.Connection, translate: Callable[[apsw.Error], HermesError]) -> None:
        self.view = View(connection)
        self.active = threading.local()
        """Its `view` is set in the thread that is running a request."""
        self._connection = connection
        self._execute = connection.execute
        self._translate = translate

    @property
    def is_open(self) -> bool:
        """Whether it has begun and SQLite has not ended it because of an error."""
        return self._connection.in_transaction

    def begin(self) -> None:
        """Begin, or raise if another writer holds SQLite's lock."""
        self._execute("BEGIN IMMEDIATE")

    def run(self, request: WriteRequest, *, is_alone: bool, lets_interrupts_out: bool) -> None:
        """Run one request. An error goes to its caller, and only its own changes are undone."""
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
                raise  # an interrupt, or the end of this thread: not an error of the request
            request.error = self._translate(exc) if isinstance(exc, apsw.Error) else exc
            if is_alone:
                self.roll_back()
            elif self.is_open:
                self._execute("ROLLBACK TO work")
                self._execute("RELEASE work")
        finally:
            self.active.view = outer

    def commit(self) -> None:
        """Commit; without a WAL, a commit waits for readers."""
        for _ in range(COMMIT_ATTEMPTS):
            try:
                self._execute("COMMIT")
                return
            except apsw.BusyError:
                continue
        self._execute("COMMIT")

    def roll_back(self) -> None:
        """Roll back if the transaction is open."""
        if self.is_open:
            self._execute("ROLLBACK")
