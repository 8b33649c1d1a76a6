"""The MySQL and MariaDB part of the engine: connections and errors."""

from __future__ import annotations

import time

from hermes.errors import HermesError
from hermes.state.mysql import errors, schema
from hermes.state.mysql.connection.pool import Pool
from hermes.state.mysql.connection.server_info import Server
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.server.faults import Fault, Verdict


class MySQLBackend:
    """One database, over the connections of a pool."""

    def __init__(self, pool: Pool, *, is_own: bool, read_only: bool, timeout_s: float) -> None:
        self.pool = pool
        self._is_own = is_own
        self._timeout_s = timeout_s
        try:
            connection = pool.acquire(timeout_s)
            try:
                self.server: Server = pool.server
                self.status = schema.ensure(connection, self.server.collation, pool.where, read_only=read_only)
            finally:
                pool.release(connection)
        except Fault as fault:
            raise self.translate(fault) from fault

    @property
    def where(self) -> str:
        """The address of the database, without secrets."""
        return self.pool.where

    @property
    def born(self) -> str:
        """The mark that the tables got when they were created."""
        return self.status.ledger.born

    def acquire(self, deadline: float, /) -> MySQLTransaction:
        """Return a connection for the calling thread."""
        return MySQLTransaction(self.pool.acquire(deadline - time.monotonic()), self.server)

    def release(self, tx: MySQLTransaction, /) -> None:
        """Take a connection back; one that is not sound is replaced."""
        self.pool.release(tx.connection)

    def verdict(self, fault: Fault, /) -> Verdict:
        """Whether work that failed with this fault may be repeated."""
        return errors.verdict(fault)

    def translate(self, fault: Fault, /) -> HermesError:
        """Return the error for the caller."""
        return errors.translate(fault, self.where)

    def is_committed(self, token: str, /) -> bool | None:
        """Return None: no server of this kind can say what became of a transaction."""
        return None

    def run_alone(self, command: str) -> None:
        """Execute a command outside of any transaction, for as long as it takes."""
        try:
            connection = self.pool.connect()
            try:
                connection.run(command)
            finally:
                connection.close()
        except Fault as fault:
            raise self.translate(fault) from fault

    def close(self) -> None:
        """Close every connection, except those of a pool that the caller passed in."""
        if self._is_own:
            self.pool.close()
