"""How a store on MySQL or MariaDB is opened, configured and shared."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import Config, SessionDBConfig
from hermes.errors import ConfigError, InvalidValue, StoreBusy, StoreClosed, StoreUnavailable
from hermes.state.engine import Capability
from hermes.state.mysql.address import Address
from hermes.state.mysql.pool import Pool
from hermes.state.mysql.provider import MySQLSessionDBProvider
from hermes.state.mysql.server import Server
from hermes.state.provider import open_session_db
from hermes_state import SessionDB
from tests.mysql.conftest import rows_of
from tests.support.calls import READS, fill
from tests.support.conversations import at_once
from tests.upgrade.checks import environment

SECRET = "hunter2-and-more"


class TestInitialize:
    def test_is_needed_where_nothing_was_named(self) -> None:
        store = MySQLSessionDBProvider()
        with pytest.raises(StoreClosed, match="initialize"):
            store.session_count()
        store.close()

    def test_opens_what_a_dsn_names(self, dsn: str, settings: SessionDBConfig) -> None:
        with MySQLSessionDBProvider(settings=settings) as store:
            store.initialize(dsn=dsn)
            assert store.session_count() == 0

    def test_takes_no_pool_but_ours(self) -> None:
        with pytest.raises(InvalidValue, match=r"hermes\.state\.mysql\.pool"):
            MySQLSessionDBProvider(pool=object())  # type: ignore[arg-type]

    def test_closes_what_was_open_before(self, dsn: str, settings: SessionDBConfig) -> None:
        with MySQLSessionDBProvider(dsn, settings=settings) as store:
            before = store._engine
            store.initialize(dsn=dsn)
            with pytest.raises(StoreClosed):
                before.read(lambda tx: tx.value("SELECT 1"))
            assert store.session_count() == 0


class TestPool:
    def test_that_is_passed_in_stays_open(self, dsn: str, settings: SessionDBConfig) -> None:
        pool = Pool(dsn, settings)
        MySQLSessionDBProvider(pool=pool, settings=settings).close()
        with MySQLSessionDBProvider(pool=pool, settings=settings) as store:
            assert store.session_count() == 0
        pool.close()

    def test_that_was_closed_is_told(self, dsn: str, settings: SessionDBConfig) -> None:
        pool = Pool(dsn, settings)
        store = MySQLSessionDBProvider(pool=pool, settings=settings)
        pool.close()
        with pytest.raises(StoreClosed):
            store.session_count()
        store.close()

    def test_of_one_connection_is_enough_for_every_operation(
        self, dsn: str, settings: SessionDBConfig, tmp_path: Path
    ) -> None:
        own = replace(settings, pool_max_size=1, pool_timeout_s=5)
        with MySQLSessionDBProvider(dsn, settings=own) as store:
            with SessionDB(tmp_path / "other.db") as other:
                sample = fill(store, other, tmp_path / "other.db")
            for call in READS.values():
                call(store, sample)
            store.append_messages("s", [{"role": "user", "content": f"word{n}"} for n in range(600)])
            assert len(store.search_messages("word599")) == 1
            store._engine.write(lambda tx: store.get_session("s"))

    def test_of_one_connection_is_shared_by_threads(self, dsn: str, settings: SessionDBConfig) -> None:
        with MySQLSessionDBProvider(dsn, settings=replace(settings, pool_max_size=1)) as store:
            store.create_session("s", "cli")
            at_once(6, lambda number: [store.append_message("s", "user", f"{number}") for _ in range(20)])
            assert store.message_count("s") == 120

    def test_that_is_used_up_is_told(self, dsn: str, settings: SessionDBConfig) -> None:
        own = replace(settings, pool_max_size=1, pool_timeout_s=0.2, write_timeout_s=0.2)
        with MySQLSessionDBProvider(dsn, settings=own) as store:

            def work(tx: Any) -> None:
                tx.value("SELECT 1")
                with pytest.raises(StoreBusy, match="connections") as caught:
                    at_once(1, lambda _: store.create_session("s", "cli"))
                assert "pool_max_size" in caught.value.hint

            store._engine.write(work)

    def test_opens_no_more_connections_than_it_may(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        with MySQLSessionDBProvider(dsn, settings=replace(settings, pool_max_size=3)) as store:
            store.create_session("s", "cli")
            at_once(9, lambda number: [store.append_message("s", "user", f"{number}") for _ in range(10)])
            assert store.health()["pool"]["connections"] <= 3
            ours = rows_of(connection, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()")
            assert ours[0][0] <= 3 + 1


class TestAddress:
    def test_has_everything_that_a_dsn_says(self) -> None:
        given = "mariadb://me%40home:p%2Fw@db.example:3307/hermes?ssl_ca=/ca.pem&ssl_verify_cert=true"
        address = Address.of(given)
        assert (address.user, address.password, address.host, address.port) == ("me@home", "p/w", "db.example", 3307)
        assert (address.database, address.options) == ("hermes", {"ssl_ca": "/ca.pem", "ssl_verify_cert": True})

    def test_may_be_a_socket(self) -> None:
        assert Address.of("mysql://root@localhost/h?unix_socket=/run/mysqld.sock").unix_socket == "/run/mysqld.sock"

    @pytest.mark.parametrize(
        "dsn",
        [
            *("postgresql://u@h/d", "mysql://u@h", "mysql://u@h/d?colour=blue", "mysql://u@h:port/d", "nonsense"),
            *("mysql://u@h/d?ssl_verify_cert=perhaps", "mysql://u@h/d?nothing"),
        ],
    )
    def test_that_is_none_is_told(self, dsn: str) -> None:
        with pytest.raises(ConfigError, match="MySQL or MariaDB"):
            Address.of(dsn)


class TestSecrets:
    """The password of a DSN is shown nowhere."""

    @pytest.mark.parametrize(
        "dsn",
        [
            f"mysql://hermes:{SECRET}@127.0.0.1:1/none",
            f"mysql://hermes:{SECRET}@[broken/none",
            f"mysql://hermes:{SECRET}@host/none?what={SECRET}",
            f"nonsense {SECRET}",
        ],
    )
    def test_of_an_address_that_leads_nowhere(self, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with pytest.raises((ConfigError, StoreUnavailable)) as caught:
            MySQLSessionDBProvider(dsn)
        chain: list[BaseException | None] = [caught.value, caught.value.__cause__]
        assert SECRET not in "".join(map(repr, chain)) + str(caught.value) + caught.value.hint + caplog.text

    def test_of_a_user_whom_the_server_refuses(self, server: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with pytest.raises(StoreUnavailable, match="Access denied") as caught:
            MySQLSessionDBProvider(server.replace("root@", f"nobody_here:{SECRET}@"))
        assert "sessiondb.dsn" in caught.value.hint
        assert SECRET not in str(caught.value) + caplog.text

    def test_of_an_open_store(self, store: MySQLSessionDBProvider) -> None:
        assert "root" in json.dumps(store.health())
        assert SECRET not in repr(Address.of(f"mysql://hermes:{SECRET}@host/none"))


def test_a_database_that_is_not_there_is_told(server: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        MySQLSessionDBProvider(server.replace("/mysql?", "/hermes_nowhere?"))
    assert "create the database" in caught.value.hint


class TestConfiguration:
    def test_names_the_store(self, dsn: str, settings: SessionDBConfig) -> None:
        with open_session_db(Config(sessiondb=replace(settings, dsn=dsn))) as store:
            assert isinstance(store, MySQLSessionDBProvider)
            assert store.capabilities == {Capability.SERVER}

    def test_without_an_address_is_told(self) -> None:
        with pytest.raises(ConfigError, match=r"sessiondb\.dsn"):
            open_session_db(Config(sessiondb=SessionDBConfig(provider="mysql")))


def test_without_the_driver_the_command_that_installs_it_is_named() -> None:
    program = """
import sys
sys.modules["pymysql"] = None
from hermes.state.mysql.provider import MySQLSessionDBProvider
try:
    MySQLSessionDBProvider("mysql://localhost/none")
except Exception as exc:
    print(type(exc).__name__, str(exc).count("."), "pip install 'hermes-sessions[mysql]'" in str(exc))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, env=environment(), check=True
    )
    assert done.stdout == "ConfigError 0 True\n"


def test_health_tells_what_there_is_to_know(store: MySQLSessionDBProvider) -> None:
    health = store.health()
    assert (health["ok"], health["provider"], health["schema_version"]) == (True, "mysql", 11)
    assert health["server"].startswith(("MariaDB ", "MySQL "))
    assert health["pool"]["connections"] >= 1
    assert health["waiting_for_index"] == 0
    json.dumps(health)


class TestServers:
    """What a server says of itself, since no test meets them all."""

    @pytest.mark.parametrize(
        ("greeting", "name", "collation"),
        [
            ("8.0.36", "MySQL 8.0.36", "utf8mb4_0900_bin"),
            ("8.4.2-commercial", "MySQL 8.4.2", "utf8mb4_0900_bin"),
            ("5.5.5-10.11.6-MariaDB-0+deb12u1", "MariaDB 10.11.6", "utf8mb4_nopad_bin"),
            ("11.4.2-MariaDB-log", "MariaDB 11.4.2", "utf8mb4_nopad_bin"),
        ],
    )
    def test_tells_them_apart(self, greeting: str, name: str, collation: str) -> None:
        server = Server.of(greeting, "here")
        assert (server.name, server.collation) == (name, collation)

    @pytest.mark.parametrize("greeting", ["5.7.44", "8.0.20", "5.5.5-10.3.39-MariaDB", "strange"])
    def test_refuses_old_ones(self, greeting: str) -> None:
        with pytest.raises(StoreUnavailable, match="here is on"):
            Server.of(greeting, "here")

    def test_limits_a_query_in_the_words_of_each(self) -> None:
        mysql, mariadb = Server.of("8.0.36", ""), Server.of("10.11.6-MariaDB", "")
        assert mysql.limited("SELECT 1", 0.25) == "SELECT /*+ MAX_EXECUTION_TIME(250) */ 1"
        assert mariadb.limited("SELECT 1", 0.25) == "SET STATEMENT max_statement_time = 0.250 FOR SELECT 1"
