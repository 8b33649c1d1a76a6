"""What the engine has to know about PostgreSQL: how to get at it, and what its answers mean."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import psycopg
from psycopg import sql

from hermes.errors import HermesError, StoreBusy
from hermes.state.postgres import faults, login, schema, server, timeline
from hermes.state.postgres.address import Address
from hermes.state.postgres.pool import Lender, Pool
from hermes.state.postgres.session import PostgresSession
from hermes.state.postgres.spare import Spare
from hermes.state.postgres.wire import STARTED, Connection, Request, Wire, text_of
from hermes.state.server.attempts import Attempts
from hermes.state.server.faults import Fault, Lost, Refused, Unserved, Verdict

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig

SETTLE_S, SETTLE_PAUSE_S = 10.0, 0.02
"""How long a transaction is waited for whose end is not known, and between two questions."""

_OUTCOME = f"SELECT pg_xact_status(CAST(CAST(:number AS text) AS xid8)), CAST(:started AS text) = {STARTED}"


class PostgresBackend:
    """One database, over the connections of a pool."""

    def __init__(
        self, address: Address | None, pool: Pool | None, settings: SessionDBConfig, *, read_only: bool
    ) -> None:
        self.lender = Lender(address, pool, settings)
        self._schema = settings.schema
        self._wires: WeakKeyDictionary[Connection, Wire] = WeakKeyDictionary()
        # Somebody else's connections go back to their pool at once.
        self._spare = Spare() if pool is None else None
        with self._translated(), self.lender.first() as connection:
            self.server = server.learn(connection, settings, self.where)
            self.status = schema.ensure(connection, settings.schema, self.where, read_only=read_only)
            if settings.postgresql.stemming is not None and not read_only:
                schema.add_stems(connection, settings.schema)
        self._may_prepare = not self.server.is_behind_pooler

    @property
    def where(self) -> str:
        """The database, as it may be shown."""
        return self.lender.where

    def take(self, deadline: float, /) -> PostgresSession:
        """A connection for the calling thread."""
        if self._spare is None:
            return self._borrow(deadline)
        session = self._spare.take()
        if session is not None:
            if not self.lender.is_replaced(session.wire.connection):
                return session
            self._discard(session)
            return self._borrow(deadline)
        try:
            return self._borrow(deadline)
        finally:
            self._spare.stop_waiting()

    def _borrow(self, deadline: float) -> PostgresSession:
        connection = self.lender.take(deadline - time.monotonic())
        if self.lender.is_replaced(connection):
            self.lender.discard(connection)
            raise Lost(timeline.REPLACED)
        wire = self._wires.get(connection)
        if wire is None:
            wire = self._wires[connection] = Wire(connection)
        wire.may_prepare = self._may_prepare
        try:
            wire.enter()
        except psycopg.Error as exc:
            self.lender.discard(connection)
            raise Lost(str(exc).strip()) from None
        return PostgresSession(wire, self.server.opening, is_behind_pooler=self.server.is_behind_pooler)

    def give_back(self, session: PostgresSession, /) -> None:
        """Take a connection back; one that is not sound is replaced."""
        if not session.wire.is_sound or session.wire.is_in_transaction:
            self._discard(session)
        elif self._spare is None or not self._spare.keep(session):
            session.wire.leave()
            self.lender.give_back(session.wire.connection)

    def _discard(self, session: PostgresSession) -> None:
        """Replace a connection that broke, and the spare one, which then probably did too."""
        spare = None if self._spare is None else self._spare.give_up()
        for each in (session, spare):
            if each is not None:
                self.lender.discard(each.wire.connection)

    def verdict(self, fault: Fault, /) -> Verdict:
        """Whether work that failed like this may be done again."""
        if isinstance(fault, Refused) and fault.code in faults.UNPREPARED:
            self._may_prepare = False
            for wire in list(self._wires.values()):
                wire.may_prepare = False
        return faults.verdict(fault)

    def translate(self, fault: Fault, /) -> HermesError:
        """What a failure means for the caller."""
        if isinstance(fault, Unserved):
            return StoreBusy(
                f"no server connection was free in time behind the pooler at {self.where}", hint=login.SERVE_MORE
            )
        return faults.translate(fault, self.where)

    def is_committed(self, token: str, /) -> bool | None:
        """Whether a transaction was committed; None if the server cannot tell for sure."""
        number, started = token.split("@")
        attempts = Attempts(time.monotonic() + SETTLE_S)
        while time.monotonic() < attempts.deadline:
            try:
                outcome, is_same_run = self._ask_outcome(number, started)
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
                # A server that crashed may have given the number to somebody else since.
                return True if is_same_run else None
            if outcome is None:
                return None
            time.sleep(SETTLE_PAUSE_S)
        return None

    def run_alone(self, command: str, table: str) -> None:
        """Execute a command on a table outside of any transaction, for as long as it takes."""
        named = table if self._schema is None else f"{sql.Identifier(self._schema).as_string()}.{table}"
        session = self.take(time.monotonic() + SETTLE_S)
        try:
            session.wire.ask([Request(text_of(f"{command} {named}"))])
        except Fault as fault:
            raise self.translate(fault) from fault
        finally:
            self.give_back(session)

    def close(self) -> None:
        """Close every connection of our own."""
        spare = None if self._spare is None else self._spare.give_up()
        if spare is not None:
            spare.wire.leave()
            self.lender.give_back(spare.wire.connection)
        self.lender.close()

    def _ask_outcome(self, number: str, started: str) -> tuple[str | None, int]:
        session = self.take(time.monotonic() + SETTLE_S)
        try:
            session.begin(read_only=True, timeout_s=SETTLE_S)
            row = session.row(_OUTCOME, number=number, started=started)
            assert row is not None
            return row[0], row[1]
        finally:
            session.roll_back()
            self.give_back(session)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise psycopg's errors as ours."""
        try:
            yield
        except psycopg.Error as exc:
            reason = exc.diag.message_primary or self.lender.mask(str(exc)).strip()
            fault: Fault = Lost(reason) if exc.sqlstate is None else Refused(exc.sqlstate, reason)
            raise self.translate(fault) from None
