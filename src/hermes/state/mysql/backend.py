"""The MySQL and MariaDB part of the engine: connections and errors."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hermes.errors import HermesError
from hermes.state.mysql import errors, schema
from hermes.state.mysql.connection.pool import Pool
from hermes.state.mysql.connection.server_info import Server
from hermes.state.mysql.connection.statements import DriverConnection
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.server.faults import Fault, ServerError, Verdict

REOPENING = ("ALTER TABLE messages COMMENT = ''", "ALTER TABLE sessions COMMENT = ''")
"""Statements that change nothing, but make all nodes of a cluster open the tables with triggers again."""


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
        if isinstance(fault, ServerError) and fault.code == errors.NOT_PARSED and self._reopen_tables():
            return Verdict.RETRY_NOW
        return errors.verdict(fault)

    def translate(self, fault: Fault, /) -> HermesError:
        """Return the error for the caller."""
        return errors.translate(fault, self.where)

    def _reopen_tables(self) -> bool:
        """Make the nodes of a cluster open their tables again; return False for one server, or without the right to.

        A server parses the triggers of a table when it opens it. If another node rolls back the transaction at that
        moment, MariaDB keeps the table open with broken triggers, and refuses every change of it.
        """
        try:
            connection = self.pool.connect()
        except Fault:
            return False
        try:
            return connection.is_in_cluster and _can_run(connection, REOPENING)
        finally:
            connection.close()

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


def _can_run(connection: DriverConnection, statements: Sequence[str]) -> bool:
    try:
        for each in statements:
            connection.run(each)
    except Fault:
        return False
    return True
