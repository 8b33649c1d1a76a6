"""The session store on MySQL and MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.clock import Clock, system_clock
from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, InvalidValue
from hermes.state.provider import SessionDBProvider

if TYPE_CHECKING:
    from hermes.state.mysql.engine import MySQLEngine
    from hermes.state.mysql.pool import Pool

SETTINGS = SessionDBConfig(provider="mysql")


class MySQLSessionDBProvider(SessionDBProvider):
    """A session store on a server: for many processes, on many machines.

    Without a DSN and a pool it is opened by `initialize`. A pool that is passed in stays the caller's to close.
    """

    def __init__(
        self,
        dsn: str | None = None,
        pool: Pool | None = None,
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

    def _open(self, dsn: str | None, pool: Any) -> MySQLEngine:
        try:
            from hermes.state.mysql.backend import MySQLBackend
            from hermes.state.mysql.engine import MySQLEngine
            from hermes.state.mysql.pool import Pool
        except ImportError as exc:
            if not (exc.name or "").startswith("pymysql"):
                raise
            raise ConfigError(
                "MySQL needs a package that is not installed: pip install 'hermes-sessions[mysql]'"
            ) from None
        if pool is not None and not isinstance(pool, Pool):
            raise InvalidValue(f"pool must be a Pool of hermes.state.mysql.pool, not {type(pool).__name__}")
        chosen = self._settings.dsn if dsn is None else dsn
        if pool is None and (not isinstance(chosen, str) or not chosen):
            raise InvalidValue("dsn must be an address such as mysql://user:password@host/database")
        lender = pool or Pool(chosen or "", self._settings)
        backend = MySQLBackend(
            lender, is_own=pool is None, read_only=self._read_only, timeout_s=self._settings.pool_timeout_s
        )
        return MySQLEngine(backend, self._settings, read_only=self._read_only)
