"""PostgreSQL as an engine of the session store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from hermes.state.engine import Capability, Index, LaneListener, Maintenance
from hermes.state.postgres.backend import PostgresBackend
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.postgres.search.indexing import Batch, Indexer
from hermes.state.server.search.background_index import IndexedEngine

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig


class PostgresEngine(IndexedEngine[PostgresTransaction, Batch]):
    """One database, as one store uses it."""

    name = "postgresql"

    def __init__(self, backend: PostgresBackend, settings: SessionDBConfig, *, read_only: bool) -> None:
        super().__init__(backend, Indexer(), read_only=read_only, write_timeout_s=settings.write_timeout_s)
        self._database = backend
        self._schema = settings.schema

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities that not every store has."""
        parts = {Capability.PARTS} if self._database.status.has_trigrams else set()
        return frozenset({Capability.SERVER, *parts})

    @cached_property
    def index(self) -> Index:
        """The search index."""
        from hermes.state.postgres.search.index import PostgresIndex

        return PostgresIndex()

    @cached_property
    def maintenance(self) -> Maintenance:
        """Maintenance operations: merge the index, compact, erase."""
        from hermes.state.postgres.maintenance import PostgresMaintenance

        return PostgresMaintenance(self.read, self.catch_up, self._database.run_alone)

    def listen_lanes(self, node: str, /) -> LaneListener | None:
        """A listener with a connection of its own; none behind a pooler, or for a pool that the caller passed in."""
        self._require_open()
        if self._database.server.is_behind_pooler or not self._database.pool.can_connect_alone:
            return None
        from hermes.state.postgres.connection.listener import PostgresLaneListener

        return PostgresLaneListener(self._database.pool, self._schema, node)

    def describe(self) -> dict[str, Any]:
        """The state of the server, of the connections to it and of the index."""
        return {
            "database": self._database.where,
            "server": self._database.server.name,
            "is_behind_pooler": self._database.server.is_behind_pooler,
            "pool": self._database.pool.stats(),
            "waiting_for_index": self.waiting_for_index(),
        }
