"""The connection that was used last: ready for the next borrower, without the way to the pool and back."""

from __future__ import annotations

import os
import threading

from hermes.state.postgres.connection.transaction import PostgresTransaction

MOST_USES = 1_000
"""How often a connection is spared before it goes back to the pool, which replaces connections that are old."""

_inherited: list[PostgresTransaction] = []
"""Connections of the process that this one was forked from: not even letting go of them is safe here."""


class SpareConnection:
    """Keeps one connection, as long as nobody waits for the pool."""

    def __init__(self) -> None:
        self._tx: PostgresTransaction | None = None
        self._uses = 0
        self._waiting = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def is_kept(self) -> bool:
        """Whether a connection is kept."""
        return self._tx is not None

    def acquire(self) -> PostgresTransaction | None:
        """The connection, if there is one; whoever gets none has to say when his wait for the pool is over."""
        if self._process != os.getpid():
            self._forget_parent_connections()
        with self._lock:
            tx, self._tx = self._tx, None
            if tx is None:
                self._waiting += 1
            return tx

    def stop_waiting(self) -> None:
        """Hear that somebody who got none has one from the pool, or has given up."""
        with self._lock:
            self._waiting -= 1

    def keep(self, tx: PostgresTransaction) -> bool:
        """Keep a connection; False if it should go back to the pool."""
        with self._lock:
            self._uses += 1
            if self._tx is not None or self._waiting or self._uses % MOST_USES == 0:
                return False
            self._tx = tx
            return True

    def pop(self) -> PostgresTransaction | None:
        """Hand out the connection for good."""
        with self._lock:
            tx, self._tx = self._tx, None
            return tx

    def _forget_parent_connections(self) -> None:
        if self._tx is not None:
            _inherited.append(self._tx)
        self._tx, self._waiting, self._lock, self._process = None, 0, threading.Lock(), os.getpid()
