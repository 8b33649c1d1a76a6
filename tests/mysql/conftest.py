"""Stores on MariaDB or MySQL, and a private server that a test may stop or kill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import SessionDBConfig
from hermes.state.mysql.connection.address import Address
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.support.mysql import in_database
from tests.support.servers import Server, dsn_of, private_server, server_or_skip

DURABLE = {"innodb-flush-log-at-trx-commit": "1", "innodb-flush-method": "fsync", "innodb-doublewrite": "1"}


def plain(dsn: str, **options: Any) -> pymysql.Connection:
    """A connection like that of another program."""
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
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return list(cursor.fetchall())


@contextmanager
def empty_database(server: str, directory: Path) -> Iterator[str]:
    """The DSN of an empty database for the directory of a test."""
    name = f"test_{abs(hash(str(directory))):x}"
    with plain(server) as outside:
        rows_of(outside, f"CREATE DATABASE {name}")
        try:
            yield in_database(server, name)
        finally:
            rows_of(outside, f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def server() -> str:
    """The DSN of the run's server."""
    return server_or_skip(lambda: dsn_of("mysql"))


@pytest.fixture
def dsn(server: str, tmp_path: Path) -> Iterator[str]:
    """An empty database, which is dropped after the test."""
    with empty_database(server, tmp_path) as made:
        yield made


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
    """A server that syncs to disk, and that a test may stop or kill."""
    with ExitStack() as stack:
        durable = private_server("mysql", **DURABLE, **{"max-allowed-packet": "4M"})
        server = server_or_skip(lambda: stack.enter_context(durable))
        with plain(server.dsn) as outside:
            rows_of(outside, "CREATE DATABASE hermes")
        yield server
