"""The properties of a server, read before its tables are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql
from psycopg.rows import tuple_row

from hermes.errors import ConfigError, StoreUnavailable
from hermes.state.postgres.connection.pipeline import BoundStatement, Connection, statement_text

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig

OLDEST = 130_000
SAFE_COMMITS = ("on", "remote_apply")
"""Values of synchronous_commit with which a change survives the server, and a failover if there is a standby."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server and its properties."""

    version: int
    """Such as 150004."""
    is_behind_pooler: bool
    """Whether transactions of one connection may run in different sessions of the server."""
    opening: tuple[BoundStatement, ...]
    """Statements at the beginning of every transaction, because a pooler allows no longer settings."""
    needs_begin: bool
    """Whether a statement that is sent alone, without BEGIN and COMMIT, would run with other settings."""

    @property
    def name(self) -> str:
        """Such as PostgreSQL 15.4."""
        return f"PostgreSQL {self.version // 10_000}.{self.version % 10_000}"


def read_server_info(connection: Connection, settings: SessionDBConfig, where: str) -> Server:
    """Read the properties of a server; raise if it cannot hold a store."""
    cursor = connection.cursor(row_factory=tuple_row)
    row = cursor.execute(
        """SELECT CAST(current_setting('server_version_num') AS integer), current_setting('server_encoding'),
                  current_setting('synchronous_commit'), current_setting('default_transaction_isolation'),
                  pg_backend_pid()"""
    ).fetchone()
    assert row is not None
    version, encoding, commits, isolation, process = row
    if version < OLDEST:
        raise StoreUnavailable(
            f"{where} is on PostgreSQL {version // 10_000}", hint="PostgreSQL 13 or newer is required"
        )
    if encoding != "UTF8" or connection.info.encoding != "utf-8":
        raise ConfigError(
            f"{where} stores text as {encoding}, and the connection uses {connection.info.encoding}",
            hint="create the database with ENCODING 'UTF8', and let connections use UTF8 too",
        )
    opening = tuple(BoundStatement(statement_text(text)) for text in _setup_statements(connection, settings, commits))
    return Server(
        version,
        is_behind_pooler=process != connection.pgconn.backend_pid,  # a pooler has its own numbers for its clients
        opening=opening,
        needs_begin=bool(opening) or isolation != "read committed",
    )


def _setup_statements(connection: Connection, settings: SessionDBConfig, commits: str) -> Iterator[str]:
    if settings.schema is not None:
        yield f"SET LOCAL search_path TO {sql.Identifier(settings.schema).as_string(connection)}"
    own = settings.postgresql
    if own.synchronous_commit and commits not in SAFE_COMMITS:
        yield "SET LOCAL synchronous_commit TO on"
    elif not own.synchronous_commit and commits != "off":
        yield "SET LOCAL synchronous_commit TO off"
    for name, seconds in (("statement_timeout", own.statement_timeout_s), ("lock_timeout", own.lock_timeout_s)):
        if seconds is not None:
            yield f"SET LOCAL {name} TO {max(1, round(seconds * 1000))}"
