"""The session store on PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.state.server.provider import ServerKind, ServerProvider

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

    from hermes.query.parse import Query
    from hermes.state.postgres.engine import PostgresEngine
    from hermes.state.search.finder import SearchOptions
    from hermes.state.search.results import SearchResults
    from hermes.state.search.scope import Scope


class PostgreSQLSessionDBProvider(ServerProvider["ConnectionPool[Any]"]):
    """A session store on PostgreSQL."""

    kind = ServerKind(
        "postgresql", "PostgreSQL", driver="psycopg", extra="postgres", pool="ConnectionPool of psycopg_pool"
    )

    def _find(self, asked: Query, scope: Scope, options: SearchOptions) -> SearchResults:
        if self._settings.postgresql.stemming is None:
            return super()._find(asked, scope, options)
        from hermes.state.postgres.search.stemming import find_forms

        return find_forms(self._engine, asked, scope, options)

    def _pool_type(self) -> type[ConnectionPool[Any]]:
        from psycopg_pool import ConnectionPool

        return ConnectionPool

    def _connect(self, dsn: str, pool: ConnectionPool[Any] | None) -> PostgresEngine:
        from hermes.state.postgres.backend import PostgresBackend
        from hermes.state.postgres.connection.address import Address
        from hermes.state.postgres.engine import PostgresEngine

        address = Address.of(dsn, self._settings.connect_timeout_s) if pool is None else None
        backend = PostgresBackend(address, pool, self._settings, read_only=self._read_only)
        return PostgresEngine(backend, self._settings, read_only=self._read_only)
