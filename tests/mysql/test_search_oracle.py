"""Random queries on random messages give the same results on MariaDB as a naive search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.config import SessionDBConfig
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.mysql.conftest import plain, rows_of
from tests.property.search_oracle import Trial

SEEDS = (1, 2)


class MySQLTrial(Trial):
    """A trial on a server."""

    dsn: str
    settings: SessionDBConfig

    def _open(self) -> MySQLSessionDBProvider:
        return MySQLSessionDBProvider(self.dsn, settings=self.settings)

    def _run(self, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        with plain(self.dsn) as connection:
            for sql, values in statements:
                rows_of(connection, sql.replace("?", "%s"), *values)


@pytest.fixture
def trial(dsn: str, settings: SessionDBConfig) -> type[MySQLTrial]:
    """A trial class for the test's database."""
    return type("OneTrial", (MySQLTrial,), {"dsn": dsn, "settings": settings})


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_finds_what_the_naive_search_finds(trial: type[MySQLTrial], tmp_path: Path, seed: int) -> None:
    wrong = list(trial(seed, tmp_path, queries=30).run())
    assert not wrong, str(wrong[0])


def test_a_store_of_several_batches_finds_what_the_naive_search_finds(trial: type[MySQLTrial], tmp_path: Path) -> None:
    wrong = list(trial(99, tmp_path, messages=1_100, queries=8).run())
    assert not wrong, str(wrong[0])
