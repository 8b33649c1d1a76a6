"""Random queries on random messages give the same results on PostgreSQL as a naive search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes.config import SessionDBConfig
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.property.search_oracle import Trial

SEEDS = (1, 2)


class PostgresTrial(Trial):
    """A trial on a server."""

    dsn: str
    settings: SessionDBConfig

    def _open(self) -> PostgreSQLSessionDBProvider:
        return PostgreSQLSessionDBProvider(self.dsn, settings=self.settings)

    def _run(self, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        with psycopg.connect(self.dsn) as connection:
            connection.execute(f"SET search_path TO {self.settings.schema}".encode())
            for sql, values in statements:
                connection.execute(sql.replace("?", "%s").encode(), values)


@pytest.fixture
def trial(dsn: str, settings: SessionDBConfig) -> type[PostgresTrial]:
    """A trial class for the test's schema."""
    return type("OneTrial", (PostgresTrial,), {"dsn": dsn, "settings": settings})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_finds_what_the_naive_search_finds(trial: type[PostgresTrial], tmp_path: Path, seed: int) -> None:
    wrong = list(trial(seed, tmp_path, queries=30).run())
    assert not wrong, str(wrong[0])


def test_a_store_of_several_batches_finds_what_the_naive_search_finds(
    trial: type[PostgresTrial], tmp_path: Path
) -> None:
    wrong = list(trial(99, tmp_path, messages=1_100, queries=8).run())
    assert not wrong, str(wrong[0])
