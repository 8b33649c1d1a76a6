"""The PostgreSQL part of the engine: its connections, its errors, and what became of a transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import psycopg
from psycopg import sql

from hermes.errors import HermesError, StoreBusy
from hermes.state.postgres import errors, schema
from hermes.state.postgres.connection import login, server_info, timeline
from hermes.state.postgres.connection.address import Address
from hermes.state.postgres.connection.pipeline import (
    STARTED,
    BoundStatement,
    Connection,
    DriverConnection,
    statement_text,
)
from hermes.state.postgres.connection.pool import Pool, PostgresPool
from hermes.state.postgres.connection.spare_connection import SpareConnection
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.server.faults import ConnectionLost, Fault, PoolerBusy, ServerError, Verdict
from hermes.state.server.retries import Attempts

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig

SETTLE_S, SETTLE_PAUSE_S = 10.0, 0.02
"""How long to wait for a transaction whose end is not known, and the pause between two queries about it."""

_OUTCOME = f"SELECT pg_xact_status(CAST(CAST(:number AS text) AS xid8)), CAST(:started AS text) = {STARTED}"


class PostgresBackend:
    """One database, over the connections of a pool."""

    def __init__(
        self, address: Address | None, pool: Pool | None, settings: SessionDBConfig, *, read_only: bool
    ) -> None:
        self.pool = PostgresPool(address, pool, settings)
        self._schema = settings.schema
        self._drivers: WeakKeyDictionary[Connection, DriverConnection] = WeakKeyDictionary()
        # Connections of a pool that the caller passed in go back to it at once.
        self._spare = SpareConnection() if pool is None else None
        with self._translate_errors(), self.pool.first() as connection:
            self.server = server_info.read_server_info(connection, settings, self.where)
            self.status = schema.ensure(connection, settings.schema, self.where, read_only=read_only)
            if settings.postgresql.stemming is not None and not read_only:
                schema.add_stem_index(connection, settings.schema)
        self._may_prepare = not self.server.is_behind_pooler

    @property
    def where(self) -> str:
        """The address of the database, without secrets."""
        return self.pool.where

    @property
    def born(self) -> str:
        """The mark that the tables got when they were created."""
        return self.status.ledger.born

    def acquire(self, deadline: float, /) -> PostgresTransaction:
        """Return a connection for the calling thread."""
        if self._spare is None:
            return self._acquire_from_pool(deadline)
        tx = self._spare.acquire()
        if tx is not None:
            if not self.pool.is_replaced(tx.driver.connection):
                return tx
            self._discard(tx)
            return self._acquire_from_pool(deadline)
        try:
            return self._acquire_from_pool(deadline)
        finally:
            self._spare.stop_waiting()

    def _acquire_from_pool(self, deadline: float) -> PostgresTransaction:
        connection = self.pool.acquire(deadline - time.monotonic())
        if self.pool.is_replaced(connection):
            self.pool.discard(connection)
            raise ConnectionLost(timeline.REPLACED)
        driver = self._drivers.get(connection)
        if driver is None:
            driver = self._drivers[connection] = DriverConnection(connection)
        driver.may_prepare = self._may_prepare
        try:
            driver.enter_pipeline()
        except psycopg.Error as exc:
            self.pool.discard(connection)
            raise ConnectionLost(str(exc).strip()) from None
        return PostgresTransaction(
            driver,
            self.server.opening,
            is_behind_pooler=self.server.is_behind_pooler,
            needs_begin=self.server.needs_begin,
        )

    def release(self, tx: PostgresTransaction, /) -> None:
        """Take a connection back; one that is not sound is replaced."""
        if not tx.driver.is_sound or tx.driver.is_in_transaction:
            self._discard(tx)
        elif self._spare is None or not self._spare.keep(tx):
            tx.driver.leave_pipeline()
            self.pool.release(tx.driver.connection)

    def _discard(self, tx: PostgresTransaction) -> None:
        """Replace a broken connection, and the spare one, which is probably broken too."""
        spare = None if self._spare is None else self._spare.pop()
        for each in (tx, spare):
            if each is not None:
                self.pool.discard(each.driver.connection)

    def verdict(self, fault: Fault, /) -> Verdict:
        """Whether work that failed with this fault may be repeated."""
        if isinstance(fault, ServerError) and fault.code in errors.UNPREPARED:
            self._may_prepare = False
            for driver in list(self._drivers.values()):
                driver.may_prepare = False
        return errors.verdict(fault)

    def translate(self, fault: Fault, /) -> HermesError:
        """Return the error for the caller."""
        if isinstance(fault, PoolerBusy):
            return StoreBusy(f"the pooler at {self.where} has no free server connection", hint=login.SERVE_MORE)
        return errors.translate(fault, self.where)

    def is_committed(self, token: str, /) -> bool | None:
        """Whether a transaction was committed; None if the server does not know."""
        number, started = token.split("@")
        attempts = Attempts(time.monotonic() + SETTLE_S)
        while time.monotonic() < attempts.deadline:
            try:
                outcome, is_same_run = self._read_outcome(number, started)
            except Fault as fault:
                pause = attempts.pause(self.verdict(fault), time.monotonic())
                if pause is None:
                    return None
                time.sleep(pause)
                continue
            except HermesError:
                return None
            if outcome == "aborted":
                return False
            if outcome == "committed":
                # A server that crashed may have given the number to another transaction since.
                return True if is_same_run else None
            if outcome is None:
                return None
            time.sleep(SETTLE_PAUSE_S)
        return None

    def run_alone(self, command: str, table: str) -> None:
        """Execute a command on a table outside of any transaction, for as long as it takes."""
        name = table if self._schema is None else f"{sql.Identifier(self._schema).as_string()}.{table}"
        tx = self.acquire(time.monotonic() + SETTLE_S)
        try:
            tx.driver.execute([BoundStatement(statement_text(f"{command} {name}"))])
        except Fault as fault:
            raise self.translate(fault) from fault
        finally:
            self.release(tx)

    def close(self) -> None:
        """Close every connection, except those of a pool that the caller passed in."""
        spare = None if self._spare is None else self._spare.pop()
        if spare is not None:
            spare.driver.leave_pipeline()
            self.pool.release(spare.driver.connection)
        self.pool.close()

    def _read_outcome(self, number: str, started: str) -> tuple[str | None, int]:
        tx = self.acquire(time.monotonic() + SETTLE_S)
        try:
            tx.begin(read_only=True, timeout_s=SETTLE_S)
            row = tx.row(_OUTCOME, number=number, started=started)
            assert row is not None
            return row[0], row[1]
        finally:
            tx.roll_back()
            self.release(tx)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate psycopg's errors."""
        try:
            yield
        except psycopg.Error as exc:
            reason = exc.diag.message_primary or self.pool.mask(str(exc)).strip()
            fault: Fault = ConnectionLost(reason) if exc.sqlstate is None else ServerError(exc.sqlstate, reason)
            raise self.translate(fault) from None
