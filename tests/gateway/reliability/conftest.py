"""A world on a file for every test, and one on PostgreSQL for those that need several machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from hermes.state.loop_guard import guard_event_loop
from tests.gateway.reliability.world import World, world
from tests.mysql.conftest import empty_database
from tests.support.servers import dsn_of, server_or_skip


@pytest.fixture(autouse=True)
def guarded_loop() -> Iterator[None]:
    """Let every store raise that is used on the thread of an event loop."""
    with guard_event_loop():
        yield


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose nodes share a file."""
    with world() as made:
        monkeypatch.setenv("HERMES_HOME", str(made.directory / "home"))
        yield made


@pytest.fixture
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose nodes share a PostgreSQL server."""
    dsn = server_or_skip(lambda: dsn_of("postgresql"))
    with postgres_world(dsn, f"test_{abs(hash(request.node.nodeid)):x}", monkeypatch) as made:
        yield made


@pytest.fixture(params=["postgresql", "mysql"])
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """A world whose nodes share a server, once per kind of server."""
    if request.param == "postgresql":
        yield request.getfixturevalue("many")
        return
    with (
        empty_database(server_or_skip(lambda: dsn_of("mysql")), tmp_path) as dsn,
        world({"provider": "mysql", "dsn": dsn, "write_timeout_s": 20}) as made,
    ):
        monkeypatch.setenv("HERMES_HOME", str(made.directory / "home"))
        yield made


@contextmanager
def postgres_world(
    dsn: str, schema: str, monkeypatch: pytest.MonkeyPatch, *, pooled: str | None = None
) -> Iterator[World]:
    """A world in a schema of a PostgreSQL server, perhaps behind a pooler."""
    settings = {"provider": "postgresql", "dsn": pooled or dsn, "schema": schema, "write_timeout_s": 20}
    with world(settings) as made:
        monkeypatch.setenv("HERMES_HOME", str(made.directory / "home"))
        try:
            yield made
        finally:
            made.close()
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
