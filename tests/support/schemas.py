"""Temporary schemas on a server, for commands and processes that take a DSN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.servers import dsn_of, server_or_skip


@contextmanager
def empty_schema(directory: Path) -> Iterator[str]:
    """The DSN of an empty PostgreSQL schema for the directory of a test."""
    server = server_or_skip(lambda: dsn_of("postgresql"))
    schema = f"test_{abs(hash(str(directory))):x}"
    separator = "&" if "?" in server else "?"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        try:
            yield f"{server}{separator}options=-csearch_path%3D{schema}"
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
