"""A list reads only the rows it shows, however many sessions there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import SessionDBConfig
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.mysql.conftest import rows_of
from tests.support.stores import engine_of

SESSIONS = 3_000
SHOWN = 20
MOST_READ = 10 * SHOWN
"""Also the sessions to skip, and the tips of those that are shown."""

MANY = """INSERT INTO sessions (id, source, started_at, last_active, chain_active, active_tick)
          VALUES (%s, %s, %s, %s, %s, %s)"""
READ = "SHOW SESSION STATUS LIKE 'Handler_read%'"


def rows_read(store: MySQLSessionDBProvider) -> int:
    """How many rows the server has read for the only connection of a store."""
    return sum(int(row[1]) for row in engine_of(store).read(lambda tx: tx.rows(READ)))


@pytest.mark.parametrize("is_by_activity", [False, True])
@pytest.mark.parametrize("asked", [{}, {"source": "cli"}, {"exclude_sources": ["cli"]}])
def test_list_walks_an_index_and_sorts_nothing(
    dsn: str, connection: pymysql.Connection, settings: SessionDBConfig, asked: dict[str, Any], is_by_activity: bool
) -> None:
    with MySQLSessionDBProvider(dsn, settings=replace(settings, pool_max_size=1)) as store:
        many = [(f"s{n:04}", ("cli", "web")[n % 2], n, n, n, n * 100) for n in range(SESSIONS)]
        with connection.cursor() as cursor:
            cursor.executemany(MANY, many)
        rows_of(connection, "ANALYZE TABLE sessions")
        before = rows_read(store)
        listed = store.list_sessions_rich(limit=SHOWN, order_by_last_active=is_by_activity, **asked)
        first = rows_read(store)
        store.list_sessions_rich(limit=SHOWN, order_by_last_active=is_by_activity, after=listed[-1]["cursor"], **asked)
        assert len(listed) == SHOWN
        assert first - before < MOST_READ
        assert rows_read(store) - first < MOST_READ
