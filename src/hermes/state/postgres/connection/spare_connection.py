"""The connection that was used last, kept for the next thread without a round trip through the pool."""

from __future__ import annotations

import os
import threading

from hermes.state.postgres.connection.transaction import PostgresTransaction

MOST_USES = 1_000
"""How often a connection is kept before it goes back to the pool, which replaces old connections."""

_inherited: list[PostgresTransaction] = []
"""Connections of the parent process: after a fork, not even closing them is safe."""


class SpareConnection:
    """Keeps one connection, as long as no thread waits for the pool."""

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
        """Return the connection or None; a caller that gets None asks the pool, then calls `stop_waiting`."""
        if self._process != os.getpid():
            self._forget_parent_connections()
        with self._lock:
            tx, self._tx = self._tx, None
            if tx is None:
                self._waiting += 1
            return tx

    def stop_waiting(self) -> None:
        """Note that a thread has got a connection from the pool, or has given up."""
        with self._lock:
            self._waiting -= 1

    def keep(self, tx: PostgresTransaction) -> bool:
        """Keep a connection; return False if it should go back to the pool."""
        with self._lock:
            self._uses += 1
            if self._tx is not None or self._waiting or self._uses % MOST_USES == 0:
                return False
            self._tx = tx
            return True

    def pop(self) -> PostgresTransaction | None:
        """Return the connection and forget it."""
        with self._lock:
            tx, self._tx = self._tx, None
            return tx

    def _forget_parent_connections(self) -> None:
        if self._tx is not None:
            _inherited.append(self._tx)
        self._tx, self._waiting, self._lock, self._process = None, 0, threading.Lock(), os.getpid()
