"""The particulars of a store on PostgreSQL: pools of the caller, and settings."""

from __future__ import annotations

import importlib.metadata
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from hermes.config import Config, PostgreSQLConfig, SessionDBConfig
from hermes.errors import ConfigError, InvalidValue, StoreClosed
from hermes.state.engine import Capability
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.provider import ENTRY_POINTS, SessionDBProvider, open_session_db
from hermes_state import SessionDB
from tests.server.kinds import SECRET
from tests.support.stores import engine_of


class TestInitialize:
    def test_initialize_accepts_a_pool(self, dsn: str, settings: SessionDBConfig) -> None:
        with (
            ConnectionPool(dsn, min_size=1, open=True) as pool,
            PostgreSQLSessionDBProvider(settings=settings) as store,
        ):
            store.initialize(pool=pool)
            assert store.session_count() == 0

    def test_initialize_of_a_file_store_opens_another_file(self, tmp_path: Path) -> None:
        with SessionDB(tmp_path / "one.db") as store:
            store.create_session("s", "cli")
            store.initialize(str(tmp_path / "two.db"))
            assert (store.session_count(), store.db_path.name) == (0, "two.db")

    def test_initialize_of_a_file_store_refuses_a_pool(self, tmp_path: Path) -> None:
        with SessionDB(tmp_path / "one.db") as store, pytest.raises(InvalidValue, match="pool"):
            store.initialize(pool=object())


class TestPool:
    def test_pool_of_the_caller_stays_open(self, dsn: str, settings: SessionDBConfig) -> None:
        with ConnectionPool(dsn, min_size=1, open=True) as pool:
            PostgreSQLSessionDBProvider(pool=pool, settings=settings).close()
            with pool.connection() as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)

    def test_pool_of_the_caller_is_left_unchanged(self, dsn: str, settings: SessionDBConfig) -> None:
        pool: ConnectionPool[psycopg.Connection[dict[str, Any]]] = ConnectionPool(
            dsn, min_size=1, max_size=1, open=True, kwargs={"row_factory": dict_row}
        )
        with pool, PostgreSQLSessionDBProvider(pool=pool, settings=settings) as store:
            store.create_session("s", "cli")
            assert store.session_count() == 1
            with pool.connection() as connection:
                assert not connection.autocommit
                assert connection.execute("SELECT 1 AS one").fetchone() == {"one": 1}
                assert connection.execute("SHOW search_path").fetchone() == {"search_path": '"$user", public'}

    def test_closed_pool_is_an_error(self, dsn: str, settings: SessionDBConfig) -> None:
        pool = ConnectionPool(dsn, min_size=1, open=True)
        store = PostgreSQLSessionDBProvider(pool=pool, settings=settings)
        pool.close()
        with pytest.raises(StoreClosed, match="pool"):
            store.session_count()
        store.close()


def test_the_password_of_an_open_store_is_not_shown(
    dsn: str, settings: SessionDBConfig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    own = replace(settings, dsn=psycopg.conninfo.make_conninfo(dsn, password=SECRET))
    with PostgreSQLSessionDBProvider(settings=own) as store:
        store.create_session("s", "cli")
        shown = json.dumps(store.health()) + repr(store) + str(vars(store).keys()) + caplog.text
    assert SECRET not in shown


class TestSettings:
    @pytest.fixture
    def opened(self, dsn: str, settings: SessionDBConfig) -> Iterator[Any]:
        """Open a store with other settings; return the value of a setting inside of a transaction."""
        stores: list[SessionDBProvider] = []

        def show(name: str, **own: Any) -> str:
            stores.append(
                PostgreSQLSessionDBProvider(dsn, settings=replace(settings, postgresql=PostgreSQLConfig(**own)))
            )
            return str(engine_of(stores[-1]).write(lambda tx: tx.value(f"SHOW {name}")))

        yield show
        for store in stores:
            store.close()

    def test_commits_are_durable_by_default(self, opened: Any) -> None:
        assert opened("synchronous_commit") == "on"
        assert opened("synchronous_commit", synchronous_commit=False) == "off"

    def test_commits_are_durable_even_if_the_database_turns_that_off(self, dsn: str, settings: SessionDBConfig) -> None:
        careless = psycopg.conninfo.make_conninfo(dsn, options="-c synchronous_commit=off")
        with PostgreSQLSessionDBProvider(careless, settings=settings) as store:
            assert engine_of(store).write(lambda tx: tx.value("SHOW synchronous_commit")) == "on"

    def test_time_limits_are_those_of_the_server_by_default(self, opened: Any) -> None:
        assert opened("statement_timeout") == "0"
        assert opened("statement_timeout", statement_timeout_s=2.5) == "2500ms"
        assert opened("lock_timeout", lock_timeout_s=3) == "3s"

    def test_connections_have_an_application_name(
        self, store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any]
    ) -> None:
        store.session_count()
        named = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'hermes'"
        assert connection.execute(named).fetchone() == (True,)


class TestConfiguration:
    def test_unknown_provider_is_an_error(self) -> None:
        with pytest.raises(ConfigError, match="oracle") as caught:
            open_session_db(Config(sessiondb=SessionDBConfig(provider="oracle")))
        assert "sqlite, postgresql" in caught.value.hint

    def test_dsn_in_the_wrong_setting_is_not_shown(self) -> None:
        with pytest.raises(ConfigError) as caught:
            open_session_db(Config(sessiondb=SessionDBConfig(provider=f"postgresql://u:{SECRET}@host/db")))
        assert SECRET not in str(caught.value)

    def test_provider_of_another_package_is_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        brought = importlib.metadata.EntryPoint("mine", f"{__name__}:open_mine", ENTRY_POINTS)
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: importlib.metadata.EntryPoints([brought]))
        config = Config(sessiondb=SessionDBConfig(provider="mine", path=str(tmp_path / "mine.db")))
        with open_session_db(config, read_only=False) as store:
            assert store.create_session("s", "cli") == "s"


def open_mine(settings: SessionDBConfig, *, read_only: bool) -> SessionDBProvider:
    """A provider like another package would register it."""
    assert settings.path is not None
    return SessionDB(settings.path, read_only=read_only)


def test_health_names_the_file(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as store:
        assert store.health()["path"] == str(tmp_path / "state.db")
        assert store.capabilities == {Capability.FILE, Capability.PARTS}
