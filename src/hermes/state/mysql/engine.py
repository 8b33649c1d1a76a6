"""MySQL or MariaDB as an engine of the session store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from hermes.state.engine import Capability, Index, Keeper
from hermes.state.mysql.backend import MySQLBackend
from hermes.state.mysql.filling import Done, Filler
from hermes.state.mysql.session import MySQLSession
from hermes.state.server.indexed import IndexedEngine

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig


class MySQLEngine(IndexedEngine[MySQLSession, Done]):
    """One database, as one store uses it."""

    name = "mysql"

    def __init__(self, backend: MySQLBackend, settings: SessionDBConfig, *, read_only: bool) -> None:
        super().__init__(
            backend,
            Filler(),
            backend.where,
            backend.status.ledger.born,
            read_only=read_only,
            write_timeout_s=settings.write_timeout_s,
        )
        self._database = backend

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this store can do that not every one can."""
        return frozenset({Capability.SERVER})

    @cached_property
    def index(self) -> Index:
        """How messages are found in it."""
        from hermes.state.mysql.index import MySQLIndex

        return MySQLIndex()

    @cached_property
    def keeper(self) -> Keeper:
        """Who keeps it in order."""
        from hermes.state.mysql.keeper import MySQLKeeper

        return MySQLKeeper(self.catch_up, self._database.run_alone)

    def describe(self) -> dict[str, Any]:
        """What there is to know about the server, the connections to it and the index."""
        return {
            "database": self._database.where,
            "server": self._database.server.name,
            "pool": self._database.pool.stats(),
            "waiting_for_index": self.waiting_for_index(),
        }
