"""The particulars of a store on MySQL or MariaDB: its pool, its addresses, and the servers."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, StoreClosed, StoreUnavailable
from hermes.state.mysql.connection.address import Address
from hermes.state.mysql.connection.pool import Pool
from hermes.state.mysql.connection.server_info import Server
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.mysql.conftest import rows_of
from tests.server.kinds import SECRET
from tests.support.conversations import at_once
from tests.support.stores import engine_of


class TestPool:
    def test_pool_of_the_caller_stays_open(self, dsn: str, settings: SessionDBConfig) -> None:
        pool = Pool(dsn, settings)
        MySQLSessionDBProvider(pool=pool, settings=settings).close()
        with MySQLSessionDBProvider(pool=pool, settings=settings) as store:
            assert store.session_count() == 0
        pool.close()

    def test_closed_pool_is_an_error(self, dsn: str, settings: SessionDBConfig) -> None:
        pool = Pool(dsn, settings)
        store = MySQLSessionDBProvider(pool=pool, settings=settings)
        pool.close()
        with pytest.raises(StoreClosed):
            store.session_count()
        store.close()

    def test_pool_opens_no_more_connections_than_its_limit(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        with MySQLSessionDBProvider(dsn, settings=replace(settings, pool_max_size=3)) as store:
            store.create_session("s", "cli")
            at_once(9, lambda number: [store.append_message("s", "user", f"{number}") for _ in range(10)])
            assert store.health()["pool"]["connections"] <= 3
            ours = rows_of(connection, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()")
            assert ours[0][0] <= 3 + 1


class TestAddress:
    def test_address_has_every_part_of_a_dsn(self) -> None:
        given = "mariadb://me%40home:p%2Fw@db.example:3307/hermes?ssl_ca=/ca.pem&ssl_verify_cert=true"
        address = Address.of(given)
        assert (address.user, address.password, address.host, address.port) == ("me@home", "p/w", "db.example", 3307)
        assert (address.database, address.options) == ("hermes", {"ssl_ca": "/ca.pem", "ssl_verify_cert": True})

    def test_address_can_be_a_socket(self) -> None:
        assert Address.of("mysql://root@localhost/h?unix_socket=/run/mysqld.sock").unix_socket == "/run/mysqld.sock"

    @pytest.mark.parametrize(
        "dsn",
        [
            *("postgresql://u@h/d", "mysql://u@h", "mysql://u@h/d?colour=blue", "mysql://u@h:port/d", "nonsense"),
            *("mysql://u@h/d?ssl_verify_cert=perhaps", "mysql://u@h/d?nothing"),
        ],
    )
    def test_invalid_address_is_an_error(self, dsn: str) -> None:
        with pytest.raises(ConfigError, match="MySQL or MariaDB"):
            Address.of(dsn)


class TestSecrets:
    """The password of a DSN is never shown."""

    def test_password_of_a_refused_user_is_not_shown(self, server: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with pytest.raises(StoreUnavailable, match="Access denied") as caught:
            MySQLSessionDBProvider(server.replace("root@", f"unknown_user:{SECRET}@"))
        assert "sessiondb.dsn" in caught.value.hint
        assert SECRET not in str(caught.value) + caplog.text

    def test_password_of_an_open_store_is_not_shown(self, store: MySQLSessionDBProvider) -> None:
        assert "root" in json.dumps(store.health())
        assert SECRET not in repr(Address.of(f"mysql://hermes:{SECRET}@host/none"))


def test_missing_database_is_an_error(server: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        MySQLSessionDBProvider(server.replace("/mysql?", "/hermes_nowhere?"))
    assert "create the database" in caught.value.hint


def test_sizes_of_tables_are_current(store: MySQLSessionDBProvider) -> None:
    asked = "SHOW VARIABLES LIKE 'information_schema_stats_expiry'"
    found = engine_of(store).read(lambda tx: tx.rows(asked))
    assert [int(row[1]) for row in found] in ([], [0])  # MariaDB caches none, and has no such variable


class TestServers:
    """The version strings of servers, because no test runs on all of them."""

    @pytest.mark.parametrize(
        ("greeting", "name", "collation"),
        [
            ("8.0.36", "MySQL 8.0.36", "utf8mb4_0900_bin"),
            ("8.4.2-commercial", "MySQL 8.4.2", "utf8mb4_0900_bin"),
            ("9.7.4-2", "MySQL 9.7.4", "utf8mb4_0900_bin"),
            ("5.5.5-10.11.6-MariaDB-0+deb12u1", "MariaDB 10.11.6", "utf8mb4_nopad_bin"),
            ("11.4.2-MariaDB-log", "MariaDB 11.4.2", "utf8mb4_nopad_bin"),
        ],
    )
    def test_greeting_names_the_server(self, greeting: str, name: str, collation: str) -> None:
        server = Server.of(greeting, "here")
        assert (server.name, server.collation) == (name, collation)

    @pytest.mark.parametrize("greeting", ["5.7.44", "8.0.20", "5.5.5-10.3.39-MariaDB", "strange"])
    def test_old_server_is_refused(self, greeting: str) -> None:
        with pytest.raises(StoreUnavailable, match="here is on"):
            Server.of(greeting, "here")

    def test_time_limit_uses_the_syntax_of_each_server(self) -> None:
        mysql, mariadb = Server.of("8.0.36", ""), Server.of("10.11.6-MariaDB", "")
        assert mysql.with_time_limit("SELECT 1", 0.25) == "SELECT /*+ MAX_EXECUTION_TIME(250) */ 1"
        assert mariadb.with_time_limit("SELECT 1", 0.25) == "SET STATEMENT max_statement_time = 0.250 FOR SELECT 1"
