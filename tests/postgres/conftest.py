"""Stores on PostgreSQL, and a private server that a test may stop or kill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes.config import SessionDBConfig
from hermes.state.postgres.connection.pipeline import DriverConnection
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.servers import Server, dsn_of, private_server, server_or_skip


@pytest.fixture(scope="session")
def dsn() -> str:
    """The DSN of the run's server."""
    return server_or_skip(lambda: dsn_of("postgresql"))


@pytest.fixture
def connection(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection like that of another program."""
    with psycopg.connect(dsn, autocommit=True) as opened:
        yield opened


@pytest.fixture
def schema(connection: psycopg.Connection[Any], request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The name of a schema that does not exist yet, and is dropped after the test."""
    name = f"test_{abs(hash((request.node.nodeid, str(tmp_path)))):x}"
    yield name
    connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@pytest.fixture
def settings(schema: str) -> SessionDBConfig:
    """The settings of the test's stores."""
    return SessionDBConfig(provider="postgresql", schema=schema, write_timeout_s=10)


@pytest.fixture
def store(dsn: str, settings: SessionDBConfig) -> Iterator[PostgreSQLSessionDBProvider]:
    """An empty store."""
    with PostgreSQLSessionDBProvider(dsn, settings=settings) as opened:
        yield opened


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with every round trip to the server."""
    counted: list[int] = []
    execute = DriverConnection.execute

    def counting(self: DriverConnection, statements: Any, *args: Any) -> Any:
        counted.append(len(statements))
        return execute(self, statements, *args)

    monkeypatch.setattr(DriverConnection, "execute", counting)
    return counted


@pytest.fixture(scope="module")
def private() -> Iterator[Server]:
    """A server that syncs to disk, and that a test may stop or kill."""
    with ExitStack() as stack:
        durable = private_server("postgresql", fsync="on", full_page_writes="on")
        yield server_or_skip(lambda: stack.enter_context(durable))
