"""How a store on PostgreSQL is opened, configured and shared."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from hermes.config import Config, PostgreSQLConfig, SessionDBConfig
from hermes.errors import ConfigError, InvalidValue, StoreBusy, StoreClosed, StoreUnavailable
from hermes.state.engine import Capability
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.provider import ENTRY_POINTS, SessionDBProvider, open_session_db
from hermes_state import SessionDB
from tests.support.calls import READS, fill
from tests.support.conversations import at_once
from tests.upgrade.checks import environment

SECRET = "hunter2-and-more"


class TestInitialize:
    def test_is_needed_where_nothing_was_named(self) -> None:
        store = PostgreSQLSessionDBProvider()
        with pytest.raises(StoreClosed, match="initialize"):
            store.session_count()
        store.close()

    def test_opens_what_a_dsn_names(self, dsn: str, settings: SessionDBConfig) -> None:
        with PostgreSQLSessionDBProvider(settings=settings) as store:
            store.initialize(dsn=dsn)
            assert store.session_count() == 0

    def test_takes_a_pool(self, dsn: str, settings: SessionDBConfig) -> None:
        with (
            ConnectionPool(dsn, min_size=1, open=True) as pool,
            PostgreSQLSessionDBProvider(settings=settings) as store,
        ):
            store.initialize(pool=pool)
            assert store.session_count() == 0

    def test_closes_what_was_open_before(self, dsn: str, settings: SessionDBConfig) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=settings) as store:
            before = store._engine
            store.initialize(dsn=dsn)
            with pytest.raises(StoreClosed):
                before.read(lambda tx: tx.value("SELECT 1"))
            assert store.session_count() == 0

    def test_of_a_file_opens_another_one(self, tmp_path: Path) -> None:
        with SessionDB(tmp_path / "one.db") as store:
            store.create_session("s", "cli")
            store.initialize(str(tmp_path / "two.db"))
            assert (store.session_count(), store.db_path.name) == (0, "two.db")

    def test_of_a_file_takes_no_pool(self, tmp_path: Path) -> None:
        with SessionDB(tmp_path / "one.db") as store, pytest.raises(InvalidValue, match="pool"):
            store.initialize(pool=object())


class TestPool:
    def test_that_is_passed_in_stays_open(self, dsn: str, settings: SessionDBConfig) -> None:
        with ConnectionPool(dsn, min_size=1, open=True) as pool:
            PostgreSQLSessionDBProvider(pool=pool, settings=settings).close()
            with pool.connection() as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)

    def test_that_is_passed_in_is_left_as_it_was(self, dsn: str, settings: SessionDBConfig) -> None:
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

    def test_that_was_closed_is_told(self, dsn: str, settings: SessionDBConfig) -> None:
        pool = ConnectionPool(dsn, min_size=1, open=True)
        store = PostgreSQLSessionDBProvider(pool=pool, settings=settings)
        pool.close()
        with pytest.raises(StoreClosed, match="pool"):
            store.session_count()
        store.close()

    def test_of_one_connection_is_enough_for_every_operation(
        self, dsn: str, settings: SessionDBConfig, tmp_path: Path
    ) -> None:
        own = replace(settings, pool_max_size=1, pool_timeout_s=5)
        with PostgreSQLSessionDBProvider(dsn, settings=own) as store:
            with SessionDB(tmp_path / "other.db") as other:
                sample = fill(store, other, tmp_path / "other.db")
            for call in READS.values():
                call(store, sample)
            store.append_messages("s", [{"role": "user", "content": f"word{n}"} for n in range(600)])
            assert len(store.search_messages("word599")) == 1
            store._engine.write(lambda tx: store.get_session("s"))

    def test_of_one_connection_is_shared_by_threads(self, dsn: str, settings: SessionDBConfig) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=replace(settings, pool_max_size=1)) as store:
            store.create_session("s", "cli")
            at_once(6, lambda number: [store.append_message("s", "user", f"{number}") for _ in range(20)])
            assert store.message_count("s") == 120

    def test_that_is_used_up_is_told(self, dsn: str, settings: SessionDBConfig) -> None:
        own = replace(settings, pool_max_size=1, pool_timeout_s=0.2, write_timeout_s=0.2)
        with PostgreSQLSessionDBProvider(dsn, settings=own) as store:

            def work(tx: Any) -> None:
                tx.value("SELECT 1")
                with pytest.raises(StoreBusy, match="connections") as caught:
                    at_once(1, lambda _: store.create_session("s", "cli"))
                assert "pool_max_size" in caught.value.hint

            store._engine.write(work)


class TestSecrets:
    """The password of a DSN is shown nowhere."""

    @pytest.mark.parametrize(
        "dsn",
        [
            f"postgresql://hermes:{SECRET}@127.0.0.1:1/none",
            f"host=127.0.0.1 port=1 user=hermes password={SECRET}",
            f"postgresql://hermes:{SECRET}@[broken/none",
            f"nonsense {SECRET}",
        ],
    )
    def test_of_an_address_that_leads_nowhere(self, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with pytest.raises((ConfigError, StoreUnavailable)) as caught:
            PostgreSQLSessionDBProvider(dsn)
        chain: list[BaseException | None] = [caught.value, caught.value.__cause__]
        if not caught.value.__suppress_context__:
            chain.append(caught.value.__context__)
        assert SECRET not in "".join(map(repr, chain)) + str(caught.value) + caught.value.hint + caplog.text

    def test_of_an_open_store(self, dsn: str, settings: SessionDBConfig, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        own = replace(settings, dsn=psycopg.conninfo.make_conninfo(dsn, password=SECRET))
        with PostgreSQLSessionDBProvider(settings=own) as store:
            store.create_session("s", "cli")
            shown = json.dumps(store.health()) + repr(store) + str(vars(store).keys()) + caplog.text
        assert SECRET not in shown


class TestSettings:
    @pytest.fixture
    def opened(self, dsn: str, settings: SessionDBConfig) -> Iterator[Any]:
        """Opens a store with other settings; answers what the server says inside of a transaction."""
        stores: list[SessionDBProvider] = []

        def show(name: str, **own: Any) -> str:
            stores.append(
                PostgreSQLSessionDBProvider(dsn, settings=replace(settings, postgresql=PostgreSQLConfig(**own)))
            )
            return str(stores[-1]._engine.write(lambda tx: tx.value(f"SHOW {name}")))

        yield show
        for store in stores:
            store.close()

    def test_commits_are_durable_unless_somebody_says_otherwise(self, opened: Any) -> None:
        assert opened("synchronous_commit") == "on"
        assert opened("synchronous_commit", synchronous_commit=False) == "off"

    def test_commits_are_durable_even_where_the_database_says_otherwise(
        self, dsn: str, settings: SessionDBConfig
    ) -> None:
        careless = psycopg.conninfo.make_conninfo(dsn, options="-c synchronous_commit=off")
        with PostgreSQLSessionDBProvider(careless, settings=settings) as store:
            assert store._engine.write(lambda tx: tx.value("SHOW synchronous_commit")) == "on"

    def test_limits_of_time_are_the_servers_unless_given(self, opened: Any) -> None:
        assert opened("statement_timeout") == "0"
        assert opened("statement_timeout", statement_timeout_s=2.5) == "2500ms"
        assert opened("lock_timeout", lock_timeout_s=3) == "3s"

    def test_connections_have_a_name(
        self, store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any]
    ) -> None:
        store.session_count()
        named = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'hermes'"
        assert connection.execute(named).fetchone() == (True,)


class TestConfiguration:
    def test_names_the_store(self, dsn: str, settings: SessionDBConfig) -> None:
        with open_session_db(Config(sessiondb=replace(settings, dsn=dsn))) as store:
            assert isinstance(store, PostgreSQLSessionDBProvider)
            assert store.capabilities == {Capability.SERVER, Capability.PARTS}

    def test_without_an_address_is_told(self) -> None:
        with pytest.raises(ConfigError, match=r"sessiondb\.dsn"):
            open_session_db(Config(sessiondb=SessionDBConfig(provider="postgresql")))

    def test_of_a_provider_that_nobody_brings_is_told(self) -> None:
        with pytest.raises(ConfigError, match="oracle") as caught:
            open_session_db(Config(sessiondb=SessionDBConfig(provider="oracle")))
        assert "sqlite, postgresql" in caught.value.hint

    def test_of_a_dsn_in_the_wrong_place_does_not_show_it(self) -> None:
        with pytest.raises(ConfigError) as caught:
            open_session_db(Config(sessiondb=SessionDBConfig(provider=f"postgresql://u:{SECRET}@host/db")))
        assert SECRET not in str(caught.value)

    def test_finds_a_provider_of_another_package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        brought = importlib.metadata.EntryPoint("mine", f"{__name__}:open_mine", ENTRY_POINTS)
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: importlib.metadata.EntryPoints([brought]))
        config = Config(sessiondb=SessionDBConfig(provider="mine", path=str(tmp_path / "mine.db")))
        with open_session_db(config, read_only=False) as store:
            assert store.create_session("s", "cli") == "s"


def open_mine(settings: SessionDBConfig, *, read_only: bool) -> SessionDBProvider:
    """A provider as another package would bring it."""
    assert settings.path is not None
    return SessionDB(settings.path, read_only=read_only)


def test_without_the_driver_the_command_that_installs_it_is_named() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
try:
    PostgreSQLSessionDBProvider("postgresql://localhost/none")
except Exception as exc:
    print(type(exc).__name__, str(exc).count("."), "pip install 'hermes-sessions[postgres]'" in str(exc))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, env=environment(), check=True
    )
    assert done.stdout == "ConfigError 0 True\n"


class TestHealth:
    def test_tells_what_there_is_to_know(self, store: PostgreSQLSessionDBProvider) -> None:
        health = store.health()
        assert health["ok"] is True
        assert health["provider"] == "postgresql"
        assert health["server"].startswith("PostgreSQL ")
        assert health["schema_version"] == 11
        assert health["pool"]["connections"] >= 1
        assert health["waiting_for_index"] == 0
        json.dumps(health)

    def test_of_a_file_names_it(self, tmp_path: Path) -> None:
        with SessionDB(tmp_path / "state.db") as store:
            assert store.health()["path"] == str(tmp_path / "state.db")
            assert store.capabilities == {Capability.FILE, Capability.PARTS}
