"""Places on a server for commands and processes that take a DSN, each gone after its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from tests.support.servers import NoServer, are_required, dsn_of

T = TypeVar("T")


def server_or_skip(get: Callable[[], T]) -> T:
    """What asks for PostgreSQL; without one the test is passed over, or fails where servers are required."""
    try:
        return get()
    except NoServer as exc:
        if are_required():
            pytest.fail(f"there is no PostgreSQL: {exc}")
        pytest.skip(f"there is no PostgreSQL: {exc}")


@contextmanager
def empty_schema(directory: Path) -> Iterator[str]:
    """The DSN of a schema of PostgreSQL that belongs to a test's directory and has nothing in it."""
    server = server_or_skip(lambda: dsn_of("postgresql"))
    schema = f"test_{abs(hash(str(directory))):x}"
    separator = "&" if "?" in server else "?"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        try:
            yield f"{server}{separator}options=-csearch_path%3D{schema}"
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
