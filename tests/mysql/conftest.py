"""Stores on MariaDB or MySQL, and a server that a test may do anything to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import SessionDBConfig
from hermes.state.mysql.address import Address
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.support.mysql import in_database
from tests.support.servers import NoServer, Server, are_required, dsn_of, private_server

DURABLE = {"innodb-flush-log-at-trx-commit": "1", "innodb-flush-method": "fsync", "innodb-doublewrite": "1"}


def plain(dsn: str, **options: Any) -> pymysql.Connection:
    """A connection as any other program opens one."""
    address = Address.of(dsn)
    return pymysql.connect(
        host=address.host,
        port=address.port,
        unix_socket=address.unix_socket,
        user=address.user,
        password=address.password,
        database=address.database,
        autocommit=True,
        **options,
    )


def rows_of(connection: pymysql.Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """What a statement answers."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return list(cursor.fetchall())


@pytest.fixture(scope="session")
def server() -> str:
    """The server of the run."""
    try:
        return dsn_of("mysql")
    except NoServer as exc:
        if are_required():
            pytest.fail(f"there is no MariaDB: {exc}")
        pytest.skip(f"there is no MariaDB: {exc}")


@pytest.fixture
def dsn(server: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database, which is gone after the test."""
    name = f"test_{abs(hash((request.node.nodeid, str(tmp_path)))):x}"
    with plain(server) as outside:
        rows_of(outside, f"CREATE DATABASE {name}")
        yield in_database(server, name)
        rows_of(outside, f"DROP DATABASE {name}")


@pytest.fixture
def connection(dsn: str) -> Iterator[pymysql.Connection]:
    """A connection of another program to the test's database."""
    with plain(dsn) as opened:
        yield opened


@pytest.fixture
def settings() -> SessionDBConfig:
    """The settings of the test's stores."""
    return SessionDBConfig(provider="mysql", write_timeout_s=10)


@pytest.fixture
def store(dsn: str, settings: SessionDBConfig) -> Iterator[MySQLSessionDBProvider]:
    """An empty store."""
    with MySQLSessionDBProvider(dsn, settings=settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def private() -> Iterator[Server]:
    """A server that keeps its promises (it syncs to disk), and that a test may stop or kill."""
    try:
        with private_server("mysql", **DURABLE, **{"max-allowed-packet": "4M"}) as server:
            with plain(server.dsn) as outside:
                rows_of(outside, "CREATE DATABASE hermes")
            yield server
    except NoServer as exc:
        if are_required():
            pytest.fail(f"there is no MariaDB: {exc}")
        pytest.skip(f"there is no MariaDB: {exc}")
