"""MySQL or MariaDB as an engine of the session store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from hermes.state.engine import Capability, Index, Maintenance
from hermes.state.mysql.backend import MySQLBackend
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.mysql.search.indexing import Batch, Indexer
from hermes.state.server.search.background_index import IndexedEngine

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig


class MySQLEngine(IndexedEngine[MySQLTransaction, Batch]):
    """One database, as one store uses it."""

    name = "mysql"

    def __init__(self, backend: MySQLBackend, settings: SessionDBConfig, *, read_only: bool) -> None:
        super().__init__(backend, Indexer(), read_only=read_only, write_timeout_s=settings.write_timeout_s)
        self._database = backend

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities that not every store has."""
        return frozenset({Capability.SERVER})

    @cached_property
    def index(self) -> Index:
        """The search index."""
        from hermes.state.mysql.search.index import MySQLIndex

        return MySQLIndex()

    @cached_property
    def maintenance(self) -> Maintenance:
        """Maintenance operations: merge the index, compact, erase."""
        from hermes.state.mysql.maintenance import MySQLMaintenance

        return MySQLMaintenance(self.read, self.catch_up, self._database.run_alone)

    def describe(self) -> dict[str, Any]:
        """The state of the server, of the connections to it and of the index."""
        return {
            "database": self._database.where,
            "server": self._database.server.name,
            "pool": self._database.pool.stats(),
            "waiting_for_index": self.waiting_for_index(),
        }
