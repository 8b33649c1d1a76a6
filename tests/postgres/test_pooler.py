"""Behind a pooler that gives every transaction another session of the server, everything works as without one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes.config import PostgreSQLConfig, SessionDBConfig
from hermes.errors import NotFound
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes_state import SessionDB
from tests.postgres.middleman import Middleman, middleman
from tests.support.calls import READS, WRITES, fill
from tests.support.conversations import at_once, contents


@pytest.fixture
def pooler(dsn: str) -> Iterator[Middleman]:
    """A pooler in front of the run's server."""
    with psycopg.connect(dsn) as connection:
        server = f"{connection.info.host}/.s.PGSQL.{connection.info.port}"
    # Not in the directory of the test: the name of a socket may have about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="hermes-") as place, middleman(Path(place), server) as between:
        yield between


@pytest.fixture
def store(pooler: Middleman, settings: SessionDBConfig) -> Iterator[PostgreSQLSessionDBProvider]:
    """A store behind the pooler."""
    own = replace(settings, postgresql=PostgreSQLConfig(statement_timeout_s=9, synchronous_commit=False))
    with PostgreSQLSessionDBProvider(pooler.dsn, settings=own) as opened:
        yield opened


def test_pooler_is_detected(store: PostgreSQLSessionDBProvider) -> None:
    assert store.health()["is_behind_pooler"] is True


def test_every_operation_works_through_a_pooler(store: PostgreSQLSessionDBProvider, tmp_path: Path) -> None:
    with SessionDB(tmp_path / "other.db") as other:
        sample = fill(store, other, tmp_path / "other.db")
    for call in (*READS.values(), *WRITES.values()):
        for _ in range(3):  # a statement would be prepared at its second use
            with suppress(NotFound):  # some of them delete what others change
                call(store, sample)
    assert store.health()["ok"]


def test_threads_share_few_sessions(store: PostgreSQLSessionDBProvider) -> None:
    for number in range(6):
        store.create_session(f"s{number}", "cli")

    def work(number: int) -> list[int]:
        return [store.append_message(f"s{number}", "user", f"word{turn}") for turn in range(25)]

    made = at_once(6, work)
    assert store.message_count() == 150
    for number in range(6):
        assert contents(store.get_messages(f"s{number}")) == [f"word{turn}" for turn in range(25)]
        assert made[number] == sorted(made[number])


def test_no_session_of_the_server_is_left_changed(
    store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any], pooler: Middleman
) -> None:
    store.create_session("s", "cli")
    for _ in range(5):
        store.append_message("s", "user", "docker")
        store.search_messages("docker")
    names = ("search_path", "statement_timeout", "synchronous_commit", "jit")
    usual = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in names]
    with psycopg.connect(pooler.dsn, autocommit=True, prepare_threshold=None) as other:
        for _ in range(4):
            assert [other.execute(f"SHOW {name}".encode()).fetchone() for name in names] == usual
            assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
