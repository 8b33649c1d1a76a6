"""The session store on MySQL and MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.state.server.provider import ServerKind, ServerProvider

if TYPE_CHECKING:
    from hermes.state.mysql.connection.pool import Pool
    from hermes.state.mysql.engine import MySQLEngine


class MySQLSessionDBProvider(ServerProvider["Pool"]):
    """A session store on MySQL or MariaDB."""

    kind = ServerKind(
        "mysql", "MySQL", driver="pymysql", extra="mysql", pool="Pool of hermes.state.mysql.connection.pool"
    )

    def _pool_type(self) -> type[Pool]:
        from hermes.state.mysql.connection.pool import Pool

        return Pool

    def _connect(self, dsn: str, pool: Pool | None) -> MySQLEngine:
        from hermes.state.mysql.backend import MySQLBackend
        from hermes.state.mysql.connection.pool import Pool
        from hermes.state.mysql.engine import MySQLEngine

        backend = MySQLBackend(
            pool or Pool(dsn, self._settings),
            is_own=pool is None,
            read_only=self._read_only,
            timeout_s=self._settings.pool_timeout_s,
        )
        return MySQLEngine(backend, self._settings, read_only=self._read_only)
