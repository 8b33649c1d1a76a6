"""What the engine has to know about MySQL and MariaDB: how to get at them, and what their answers mean."""

from __future__ import annotations

import time

from hermes.errors import HermesError
from hermes.state.mysql import faults, schema
from hermes.state.mysql.pool import Pool
from hermes.state.mysql.server import Server
from hermes.state.mysql.session import MySQLSession
from hermes.state.server.faults import Fault, Verdict


class MySQLBackend:
    """One database, over the connections of a pool."""

    def __init__(self, pool: Pool, *, is_own: bool, read_only: bool, timeout_s: float) -> None:
        self.pool = pool
        self._is_own = is_own
        self._timeout_s = timeout_s
        try:
            wire = pool.take(timeout_s)
            try:
                self.server: Server = pool.server
                self.status = schema.ensure(wire, self.server.collation, pool.where, read_only=read_only)
            finally:
                pool.give_back(wire)
        except Fault as fault:
            raise self.translate(fault) from fault

    @property
    def where(self) -> str:
        """The database, as it may be shown."""
        return self.pool.where

    def take(self, deadline: float, /) -> MySQLSession:
        """A connection for the calling thread."""
        return MySQLSession(self.pool.take(deadline - time.monotonic()), self.server)

    def give_back(self, session: MySQLSession, /) -> None:
        """Take a connection back; one that is not sound is replaced."""
        self.pool.give_back(session.wire)

    def verdict(self, fault: Fault, /) -> Verdict:
        """Whether work that failed like this may be done again."""
        return faults.verdict(fault)

    def translate(self, fault: Fault, /) -> HermesError:
        """What a failure means for the caller."""
        return faults.translate(fault, self.where)

    def is_committed(self, token: str, /) -> bool | None:
        """No server of this kind can tell what became of a transaction."""
        return None

    def run_alone(self, command: str) -> None:
        """Execute a command outside of any transaction, for as long as it takes."""
        try:
            wire = self.pool.connect()
            try:
                wire.run(command)
            finally:
                wire.close()
        except Fault as fault:
            raise self.translate(fault) from fault

    def close(self) -> None:
        """Close every connection, unless they are another's."""
        if self._is_own:
            self.pool.close()
