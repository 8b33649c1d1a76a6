"""The session store on PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.clock import Clock, system_clock
from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, InvalidValue
from hermes.state.provider import SessionDBProvider

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

    from hermes.query.parse import Query
    from hermes.state.finding import Page
    from hermes.state.postgres.engine import PostgresEngine
    from hermes.state.results import SearchResults
    from hermes.state.scope import Scope

SETTINGS = SessionDBConfig(provider="postgresql")


class PostgreSQLSessionDBProvider(SessionDBProvider):
    """A session store on a server: for many processes, on many machines.

    Without a DSN and a pool it is opened by `initialize`. A pool that is passed in stays the caller's to close.
    """

    def __init__(
        self,
        dsn: str | None = None,
        pool: ConnectionPool[Any] | None = None,
        *,
        settings: SessionDBConfig = SETTINGS,
        read_only: bool = False,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(clock=clock)
        self._settings = settings
        self._read_only = read_only
        if dsn is not None or pool is not None or settings.dsn is not None:
            self.initialize(dsn, pool)

    def _find(self, asked: Query, scope: Scope, page: Page) -> SearchResults:
        if self._settings.postgresql.stemming is None:
            return super()._find(asked, scope, page)
        from hermes.state.postgres.stemming import find_forms

        return find_forms(self._engine, asked, scope, page)

    def _open(self, dsn: str | None, pool: Any) -> PostgresEngine:
        try:
            from psycopg_pool import ConnectionPool

            from hermes.state.postgres.address import Address
            from hermes.state.postgres.backend import PostgresBackend
            from hermes.state.postgres.engine import PostgresEngine
        except ImportError as exc:
            if not (exc.name or "psycopg").startswith("psycopg"):
                raise
            raise ConfigError(
                "PostgreSQL needs a package that is not installed: pip install 'hermes-sessions[postgres]'"
            ) from None
        if pool is not None and not isinstance(pool, ConnectionPool):
            raise InvalidValue(f"pool must be a ConnectionPool of psycopg_pool, not {type(pool).__name__}")
        chosen = self._settings.dsn if dsn is None else dsn
        if pool is None and (not isinstance(chosen, str) or not chosen):
            raise InvalidValue("dsn must be an address such as postgresql://user:password@host/database")
        address = Address.of(chosen or "", self._settings.connect_timeout_s) if pool is None else None
        backend = PostgresBackend(address, pool, self._settings, read_only=self._read_only)
        return PostgresEngine(backend, self._settings, read_only=self._read_only)
