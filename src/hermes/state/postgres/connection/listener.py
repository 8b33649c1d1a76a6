"""Notifications of PostgreSQL: a connection of its own that waits for work in lanes."""

from __future__ import annotations

import contextlib
import threading

import psycopg

from hermes.errors import HermesError
from hermes.state.postgres.connection.pipeline import Connection
from hermes.state.postgres.connection.pool import PostgresPool
from hermes.state.postgres.connection.transaction import LANES_CHANNEL

RETRY_S = 1.0
"""How long to wait after the connection broke before it is opened again."""


class PostgresLaneListener:
    """Waits for notifications that name no node, or this one."""

    def __init__(self, pool: PostgresPool, schema: str | None, node: str) -> None:
        self._pool = pool
        self._schema = schema
        self._node = node
        self._connection: Connection | None = None
        self._closed = threading.Event()

    def wait(self, timeout_s: float) -> bool:
        """Return whether a notification came within this time; one that came since the last call counts."""
        if self._closed.is_set():
            return False
        try:
            if self._connection is None:
                self._connection, self._schema = self._open()
                return True  # a notification may have been missed before
            wanted = (f"{self._schema}:", f"{self._schema}:{self._node}")
            found = self._connection.notifies(timeout=max(0.0, timeout_s), stop_after=1)
            return any(each.payload in wanted for each in list(found))
        except (psycopg.Error, OSError, HermesError):
            self._disconnect()
            self._closed.wait(min(timeout_s, RETRY_S))
            return False

    def close(self) -> None:
        """Close the connection."""
        self._closed.set()
        self._disconnect()

    def _open(self) -> tuple[Connection, str]:
        connection = self._pool.connect_alone()
        connection.execute(f"LISTEN {LANES_CHANNEL}".encode())
        if self._schema is not None:
            return connection, self._schema
        row = connection.execute(b"SELECT current_schema()").fetchone()
        return connection, str(row[0]) if row else ""

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error, OSError):
                connection.close()
