"""A store is made once, however many open it at once; what a crash left unfinished is finished by the next."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, StoreError, StoreReadOnly, StoreTooNew, StoreUnavailable
from hermes.state.mysql import schema
from hermes.state.mysql.connection.statements import DriverConnection
from hermes.state.mysql.provider import MySQLSessionDBProvider
from hermes.state.server.ledger import FORMAT, checksum
from tests.mysql.conftest import plain, rows_of
from tests.support.conversations import ids, say, start
from tests.support.mysql import in_database
from tests.upgrade.checks import environment

OPENERS = 5
STATEMENTS = list(schema.statements("0001_store", "utf8mb4_bin"))

DIES = """
import os, sys
from hermes.state.mysql import schema
from hermes.state.mysql.provider import MySQLSessionDBProvider
from hermes.state.mysql.connection.statements import DriverConnection
run = DriverConnection.run
left = {after}
def run_until(connection, statement):
    global left
    if "CREATE TABLE" in statement or " TRIGGER " in statement:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
    return run(connection, statement)
DriverConnection.run = run_until
MySQLSessionDBProvider({dsn!r}).close()
"""
OPENS = """
from hermes.state.mysql.provider import MySQLSessionDBProvider
with MySQLSessionDBProvider({dsn!r}) as store:
    store.create_session("s", "cli")
    store.append_message("s", "user", "hello")
"""


def note(connection: pymysql.Connection, key: str, value: str) -> None:
    """Write a note of the store by plain SQL."""
    rows_of(connection, "UPDATE state_meta SET value = %s WHERE `key` = %s", value, key)


@pytest.mark.parametrize("name", schema.ADDITIONS)
def test_an_addition_is_what_its_checksum_says(name: str) -> None:
    assert schema.LEDGER[name] == checksum(schema.script(name))


def test_every_addition_has_a_checksum() -> None:
    assert list(schema.ADDITIONS) == list(schema.LEDGER)


def test_every_statement_can_be_repeated(store: MySQLSessionDBProvider, connection: pymysql.Connection) -> None:
    collation = rows_of(connection, "SELECT table_collation FROM information_schema.tables WHERE table_name='sessions'")
    for name in schema.ADDITIONS:
        for statement in schema.statements(name, collation[0][0]):
            rows_of(connection, statement.replace("%", "%%"))
    start(store, "s")
    assert store.search_messages("docker") == []


def test_processes_that_open_a_new_store_at_once_make_it_once(dsn: str, connection: pymysql.Connection) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS.format(dsn=dsn)], env=environment(), stderr=subprocess.PIPE, text=True
        )
        for _ in range(OPENERS)
    ]
    told = [each.communicate(timeout=60)[1] for each in running]
    assert [each.returncode for each in running] == [0] * OPENERS, told
    assert rows_of(connection, "SELECT COUNT(*) FROM hermes_ledger") == [(len(schema.LEDGER),)]
    assert rows_of(connection, "SELECT COUNT(*) FROM messages") == [(OPENERS,)]


@pytest.mark.parametrize("after", [0, 1, 2, 4, 9, len(STATEMENTS) - 3, len(STATEMENTS) - 1])
def test_a_process_that_is_killed_while_it_makes_the_tables_leaves_them_to_the_next(
    dsn: str, settings: SessionDBConfig, connection: pymysql.Connection, after: int
) -> None:
    died = subprocess.run(
        [sys.executable, "-c", DIES.format(dsn=dsn, after=after)], env=environment(), timeout=60, capture_output=True
    )
    assert died.returncode == -9, died.stderr
    made = rows_of(connection, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()")
    assert (made[0][0] > 0) == (after > 0)
    with pytest.raises(StoreUnavailable, match="no session store"):
        MySQLSessionDBProvider(dsn, settings=settings, read_only=True)
    with MySQLSessionDBProvider(dsn, settings=settings) as store:
        start(store, "s")
        said = say(store, "s", "docker")
        assert ids(store.search_messages("docker")) == said
    triggers = rows_of(connection, "SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()")
    assert triggers == [(4,)]
    assert rows_of(connection, "SELECT name, checksum FROM hermes_ledger") == list(schema.LEDGER.items())


def test_reading_makes_nothing(dsn: str, settings: SessionDBConfig, connection: pymysql.Connection) -> None:
    with pytest.raises(StoreUnavailable, match="no session store"):
        MySQLSessionDBProvider(dsn, settings=settings, read_only=True)
    assert rows_of(connection, "SHOW TABLES") == []


def test_text_is_compared_byte_by_byte_in_every_column(
    store: MySQLSessionDBProvider, connection: pymysql.Connection
) -> None:
    found = rows_of(
        connection,
        """SELECT DISTINCT collation_name FROM information_schema.columns
           WHERE table_schema = DATABASE() AND collation_name IS NOT NULL""",
    )
    assert found in ([("utf8mb4_nopad_bin",)], [("utf8mb4_0900_bin",)])


def test_every_table_has_a_primary_key_as_servers_may_demand(
    store: MySQLSessionDBProvider, connection: pymysql.Connection
) -> None:
    without = rows_of(
        connection,
        """SELECT table_name FROM information_schema.tables t WHERE table_schema = DATABASE() AND NOT EXISTS (
               SELECT 1 FROM information_schema.statistics s WHERE s.table_schema = t.table_schema
               AND s.table_name = t.table_name AND s.index_name = 'PRIMARY')""",
    )
    assert without == []


class TestOfTheFirstVersion:
    """A store that knows no owner of a title yet."""

    @pytest.fixture(autouse=True)
    def _made(self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection) -> None:
        with MySQLSessionDBProvider(dsn, settings=settings) as store:
            store.set_session_title(start(store, "s"), "Docker")
        rows_of(
            connection,
            """ALTER TABLE sessions DROP INDEX idx_sessions_title_unique, DROP COLUMN owner_key,
               DROP COLUMN imported_from, ADD UNIQUE KEY idx_sessions_title_unique (title)""",
        )
        rows_of(connection, "DELETE FROM hermes_ledger WHERE name <> '0001_store'")

    def test_gets_what_it_lacks(self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection) -> None:
        with MySQLSessionDBProvider(dsn, settings=settings) as store:
            row = store.get_session("s")
            assert row is not None
            assert (row["title"], row["imported_from"]) == ("Docker", None)
        key = rows_of(connection, "SHOW INDEX FROM sessions WHERE Key_name = 'idx_sessions_title_unique'")
        assert [column[4] for column in key] == ["title", "owner_key"]

    def test_is_read_as_it_is(self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection) -> None:
        with MySQLSessionDBProvider(dsn, settings=settings, read_only=True) as store:
            row = store.get_session("s")
            assert row is not None
            assert row["imported_from"] is None
        assert rows_of(connection, "SELECT COUNT(*) FROM hermes_ledger") == [(1,)]

    def test_that_was_changed_but_not_noted_as_changed_is_noted(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        MySQLSessionDBProvider(dsn, settings=settings).close()
        rows_of(connection, "DELETE FROM hermes_ledger WHERE name <> '0001_store'")
        MySQLSessionDBProvider(dsn, settings=settings).close()
        assert rows_of(connection, "SELECT name, checksum FROM hermes_ledger") == list(schema.LEDGER.items())


class TestOfAnotherVersion:
    """A store that another version has written to."""

    @pytest.fixture(autouse=True)
    def _made(self, dsn: str, settings: SessionDBConfig) -> None:
        MySQLSessionDBProvider(dsn, settings=settings).close()

    def test_that_only_it_may_write_is_only_read(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        note(connection, "min_writer", str(FORMAT + 1))
        with pytest.raises(StoreTooNew, match="read_only=True"):
            MySQLSessionDBProvider(dsn, settings=settings)
        with MySQLSessionDBProvider(dsn, settings=settings, read_only=True) as store:
            assert store.session_count() == 0

    def test_with_other_tables_is_refused(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        rows_of(connection, "UPDATE hermes_ledger SET checksum = 'ff'")
        with pytest.raises(StoreError, match="different edition"):
            MySQLSessionDBProvider(dsn, settings=settings)


class TestWithFewRights:
    @pytest.fixture
    def guest(self, server: str, dsn: str) -> Iterator[str]:
        """A user who may read the test's database, and nothing else."""
        database = dsn.partition("?")[0].rpartition("/")[2]
        with plain(server) as outside:
            rows_of(outside, "DROP USER IF EXISTS hermes_guest@localhost")
            rows_of(outside, "CREATE USER hermes_guest@localhost IDENTIFIED BY ''")
            rows_of(outside, f"GRANT SELECT ON {database}.* TO hermes_guest@localhost")
            yield in_database(server.replace("root@", "hermes_guest@"), database)
            rows_of(outside, "DROP USER hermes_guest@localhost")

    def test_what_he_may_not_make_is_told(self, guest: str, settings: SessionDBConfig) -> None:
        with pytest.raises(StoreReadOnly) as caught:
            MySQLSessionDBProvider(guest, settings=settings)
        assert "CREATE command denied" in str(caught.value)

    def test_he_can_read_what_others_made(
        self, guest: str, store: MySQLSessionDBProvider, settings: SessionDBConfig
    ) -> None:
        start(store, "s")
        said = say(store, "s", "docker")
        with MySQLSessionDBProvider(guest, settings=settings, read_only=True) as reading:
            assert ids(reading.search_messages("docker")) == said


def test_a_wire_refuses_a_server_that_takes_backslashes_for_more_than_text(connection: pymysql.Connection) -> None:
    from hermes.state.server.faults import ServerError

    with pytest.raises(ServerError, match="sql_mode"):
        DriverConnection(connection, ["SET SESSION sql_mode = 'ANSI'"])


def test_the_servers_own_database_is_left_alone(server: str) -> None:
    with pytest.raises(ConfigError, match="server's own database") as caught:
        MySQLSessionDBProvider(in_database(server, "mysql"))
    assert "CREATE DATABASE" in caught.value.hint
