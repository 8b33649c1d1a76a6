"""The connections of a process to one database: an own pool, or one that the caller passed in."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from hermes.errors import HermesError, StoreBusy, StoreClosed, StoreUnavailable
from hermes.state.postgres.connection import login
from hermes.state.postgres.connection.address import Address
from hermes.state.postgres.connection.pipeline import Connection
from hermes.state.postgres.connection.timeline import CheckedConnection, Timelines

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig

Pool = ConnectionPool[Connection]

CLOSE_S = 10.0
SHORTEST_WAIT_S = 0.05
RECONNECT_S = 1.0
"""How long a pool tries to connect, and how long to wait for it before it is asked again."""

# The pool's warnings end up in our errors if they matter; a program with its own log handler still gets them.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

_inherited: list[Pool] = []
"""Pools of the parent process: after a fork, not even closing them is safe."""


class PostgresPool:
    """Lends connections, each to one thread at a time."""

    def __init__(self, address: Address | None, pool: Pool | None, settings: SessionDBConfig) -> None:
        self._address = address
        self._given = pool
        self._settings = settings
        self._own: Pool | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._is_closed = False
        self._timelines = Timelines()

    @property
    def where(self) -> str:
        """The address of the database, without secrets."""
        place = "the PostgreSQL database" if self._address is None else self._address.display
        return f"{place}, schema {self._settings.schema}" if self._settings.schema else place

    @contextlib.contextmanager
    def first(self) -> Iterator[Connection]:
        """Yield a connection for opening a store; if there is none, raise the reason at once."""
        if self._given is None:
            with contextlib.closing(self._connect()) as connection:
                yield connection
            return
        connection = self.acquire(self._settings.pool_timeout_s)
        was_autocommit = connection.autocommit
        try:
            connection.set_autocommit(True)
            yield connection
            connection.set_autocommit(was_autocommit)
        finally:
            self.release(connection)

    def acquire(self, timeout_s: float) -> Connection:
        """Return a connection that no other thread uses."""
        deadline = time.monotonic() + max(SHORTEST_WAIT_S, min(timeout_s, self._settings.pool_timeout_s))
        while True:
            pool = self._pool()
            left_s = deadline - time.monotonic()
            try:
                # A new request makes the pool try at once to connect to a server that was not reachable.
                return pool.getconn(timeout=max(SHORTEST_WAIT_S, min(left_s, RECONNECT_S)))
            except PoolClosed:
                raise self._closed_error() from None
            except TooManyRequests:
                raise self._all_in_use(pool) from None
            except PoolTimeout:
                if left_s <= RECONNECT_S:
                    raise self._all_in_use(pool) from None

    def is_replaced(self, connection: Connection) -> bool:
        """Whether another server has taken over from the server of this connection."""
        return isinstance(connection, CheckedConnection) and not self._timelines.admits(connection.timeline)

    def release(self, connection: Connection) -> None:
        """Take a connection back; a closed one is replaced."""
        if self._process == os.getpid():
            self._pool().putconn(connection)

    def discard(self, connection: Connection) -> None:
        """Replace a broken connection, and the other ones of an own pool, which are probably broken too."""
        if self._process == os.getpid():
            connection.close()
            self._pool().putconn(connection)
            if self._own is not None:
                self._own.drain()

    def stats(self) -> dict[str, int]:
        """How many connections exist, are free, and are waited for."""
        found = self._pool().get_stats()
        names = {"pool_size": "connections", "pool_available": "free", "requests_waiting": "waiting"}
        return {name: found.get(key, 0) for key, name in names.items()}

    def close(self) -> None:
        """Close the own pool; a pool that the caller passed in stays open."""
        self._is_closed = True
        with self._lock:
            own, self._own = self._own, None
        if own is not None and self._process == os.getpid():
            own.close(timeout=CLOSE_S)

    def mask(self, text: str) -> str:
        """A text without the secrets of the address."""
        return text if self._address is None else self._address.mask(text)

    def _pool(self) -> Pool:
        if self._process != os.getpid():
            self._forget_parent_connections()
        if self._given is not None:
            return self._given
        if (own := self._own) is not None:
            return own
        with self._lock:
            if self._is_closed:
                raise StoreClosed
            if self._own is None:
                self._own = self._new_pool()
            return self._own

    def _forget_parent_connections(self) -> None:
        """Start again with new connections in a forked process."""
        if self._given is not None:
            raise StoreUnavailable(
                "the connection pool was created before this process was forked",
                hint="create a pool, and open the store, in the new process",
            )
        if self._own is not None:
            _inherited.append(self._own)
        self._own, self._lock, self._process = None, threading.Lock(), os.getpid()

    def _new_pool(self) -> Pool:
        assert self._address is not None
        smallest = min(self._settings.pool_min_size, self._settings.pool_max_size)
        return ConnectionPool(
            self._address.conninfo,
            connection_class=CheckedConnection,
            kwargs={"autocommit": True, "prepare_threshold": None, "timelines": self._timelines},
            min_size=smallest,
            max_size=self._settings.pool_max_size,
            timeout=self._settings.pool_timeout_s,
            reconnect_timeout=RECONNECT_S,
            name="hermes",
            open=True,
        )

    @property
    def can_connect_alone(self) -> bool:
        """Whether `connect_alone` works: the address is known."""
        return self._address is not None

    def connect_alone(self) -> Connection:
        """Return a new connection that does not belong to the pool."""
        return self._connect()

    def _connect(self) -> Connection:
        assert self._address is not None
        try:
            return CheckedConnection.connect(
                self._address.conninfo, autocommit=True, prepare_threshold=None, timelines=self._timelines
            )
        except psycopg.Error as exc:
            reason = login.short_reason(self.mask(str(exc)))
            verb = "refused the connection" if login.is_refusal(reason) else "cannot be reached"
            raise StoreUnavailable(f"{self.where} {verb}: {reason}", hint=login.hint_for(reason)) from None

    def _all_in_use(self, pool: Pool) -> HermesError:
        """Return the error for a pool without a free connection."""
        if self._address is not None:
            try:
                self._connect().close()
            except StoreUnavailable as exc:
                return exc
        return StoreBusy(
            f"all {pool.max_size} connections to {self.where} are in use",
            hint="try again, or raise sessiondb.pool_max_size",
        )

    def _closed_error(self) -> HermesError:
        return StoreClosed() if self._given is None else StoreClosed("the connection pool has been closed")
