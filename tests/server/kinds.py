"""The kinds of servers that a store can be on, with what shared tests need for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psycopg

from hermes.state.engine import Capability
from hermes.state.mysql.provider import MySQLSessionDBProvider
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.server.provider import ServerProvider
from tests.mysql.conftest import empty_database, plain
from tests.support.schemas import empty_schema
from tests.support.servers import dsn_of, server_or_skip

SECRET = "hunter2-and-more"


class Connection(Protocol):
    """A connection of any driver."""

    def cursor(self) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of server."""

    provider: type[ServerProvider[Any]]
    capabilities: frozenset[Capability]
    servers: tuple[str, ...]
    """The beginning of its servers' names."""
    pool: str
    """The module with the class of its pools."""
    place: Callable[[Path], AbstractContextManager[str]]
    """The DSN of an empty place for the store of a test."""
    connect: Callable[[str], Connection]
    """Connects like another program, which begins its transactions itself."""
    nowhere: tuple[str, ...]
    """Addresses with a password that lead to no server."""


@contextmanager
def _database(directory: Path) -> Iterator[str]:
    with empty_database(server_or_skip(lambda: dsn_of("mysql")), directory) as dsn:
        yield dsn


KINDS = {
    "mysql": Kind(
        MySQLSessionDBProvider,
        frozenset({Capability.SERVER}),
        ("MariaDB ", "MySQL "),
        r"hermes\.state\.mysql\.connection\.pool",
        _database,
        plain,
        (
            f"mysql://hermes:{SECRET}@127.0.0.1:1/none",
            f"mysql://hermes:@{SECRET}@127.0.0.1:1/none",
            f"mysql://hermes:1/{SECRET}@127.0.0.1:1/none",
            f"mysql://hermes:1#{SECRET}@127.0.0.1:1/none",
            f"mysql://hermes:{SECRET}@[broken/none",
            f"mysql://hermes:{SECRET}@host/none?what={SECRET}",
            f"nonsense {SECRET}",
        ),
    ),
    "postgresql": Kind(
        PostgreSQLSessionDBProvider,
        frozenset({Capability.SERVER, Capability.PARTS}),
        ("PostgreSQL ",),
        "psycopg_pool",
        empty_schema,
        lambda dsn: psycopg.connect(dsn, autocommit=True),
        (
            f"postgresql://hermes:{SECRET}@127.0.0.1:1/none",
            f"host=127.0.0.1 port=1 user=hermes password={SECRET}",
            f"postgresql://hermes:@{SECRET}@127.0.0.1:1/none",
            f"postgresql://hermes:1/{SECRET}@127.0.0.1:1/none",
            f"postgresql://hermes:1#{SECRET}@127.0.0.1:1/none",
            f"postgresql://hermes:{SECRET}@[broken/none",
            f"nonsense {SECRET}",
        ),
    ),
}
