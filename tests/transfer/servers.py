"""Addresses for stores of every engine, and servers that a test may stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from hermes.config import Config, SessionDBConfig
from hermes.state.provider import SessionDBProvider, open_session_db
from tests.mysql.conftest import DURABLE, empty_database, plain, rows_of
from tests.support.schemas import empty_schema
from tests.support.servers import Server, dsn_of, private_server, server_or_skip

SYNCED = {"postgresql": {"fsync": "on", "full_page_writes": "on"}, "mysql": DURABLE}
"""Settings of servers that make commits durable."""


@contextmanager
def empty_place(engine: str, directory: Path) -> Iterator[str]:
    """Yield the address of a new, empty store for one test directory."""
    if engine == "sqlite":
        yield str(directory.with_suffix(".db"))
    elif engine == "postgresql":
        with empty_schema(directory) as dsn:
            yield dsn
    else:
        with empty_database(server_or_skip(lambda: dsn_of("mysql")), directory) as dsn:
            yield dsn


class Stoppable:
    """A server of one engine that a test may stop, with stores in it."""

    def __init__(self, engine: str, server: Server) -> None:
        self.engine = engine
        self.server = server

    def make_room(self, name: str) -> None:
        """Create the database for a store; schemas are created on first use."""
        if self.engine == "mysql":
            with plain(self.server.dsn) as outside:
                rows_of(outside, f"CREATE DATABASE {name}")

    def open(self, name: str, *, write_timeout_s: float, read_only: bool = False) -> SessionDBProvider:
        """Open the store with this name."""
        settings = SessionDBConfig(
            provider=self.engine,
            dsn=self.server.dsn,
            schema=name,
            write_timeout_s=write_timeout_s,
            pool_timeout_s=write_timeout_s,
        )
        return open_session_db(Config(sessiondb=settings), read_only=read_only)

    def hang_up(self) -> None:
        """Make the server end every connection but its own."""
        if self.engine == "postgresql":
            with psycopg.connect(self.server.dsn, autocommit=True) as outside:
                outside.execute(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                       WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""
                )
            return
        with plain(self.server.dsn) as outside:
            others = "SELECT id FROM information_schema.processlist WHERE command <> 'Daemon' AND id <> CONNECTION_ID()"
            for (number,) in rows_of(outside, others):
                rows_of(outside, f"KILL {number}")


@contextmanager
def stoppable(engine: str) -> Iterator[Stoppable]:
    """Start a server for one test module."""
    with ExitStack() as stack:
        running = private_server(engine, **SYNCED[engine])
        yield Stoppable(engine, server_or_skip(lambda: stack.enter_context(running)))
