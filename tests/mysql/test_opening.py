"""A store is created once, however many processes open it at once; the next one finishes what a crash left."""

from __future__ import annotations

import re
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
from hermes.state.server.ledger import FORMAT
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
    """Set a value in `state_meta` by plain SQL."""
    rows_of(connection, "UPDATE state_meta SET value = %s WHERE `key` = %s", value, key)


def test_every_statement_can_be_repeated(store: MySQLSessionDBProvider, connection: pymysql.Connection) -> None:
    collation = rows_of(connection, "SELECT table_collation FROM information_schema.tables WHERE table_name='sessions'")
    for name in schema.MIGRATIONS:
        for statement in schema.statements(name, collation[0][0]):
            rows_of(connection, statement.replace("%", "%%"))
    start(store, "s")
    assert store.search_messages("docker") == []


def test_processes_that_open_a_new_store_at_once_create_it_once(dsn: str, connection: pymysql.Connection) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS.format(dsn=dsn)], env=environment(), stderr=subprocess.PIPE, text=True
        )
        for _ in range(OPENERS)
    ]
    outputs = [each.communicate(timeout=60)[1] for each in running]
    assert [each.returncode for each in running] == [0] * OPENERS, outputs
    assert rows_of(connection, "SELECT COUNT(*) FROM hermes_ledger") == [(len(schema.LEDGER),)]
    assert rows_of(connection, "SELECT COUNT(*) FROM messages") == [(OPENERS,)]


@pytest.mark.parametrize("after", [0, 1, 2, 4, 9, len(STATEMENTS) - 3, len(STATEMENTS) - 1])
def test_next_process_finishes_the_tables_of_a_killed_one(
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
        message_ids = say(store, "s", "docker")
        assert ids(store.search_messages("docker")) == message_ids
    triggers = rows_of(connection, "SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()")
    assert triggers == [(4,)]
    assert rows_of(connection, "SELECT name, checksum FROM hermes_ledger") == list(schema.LEDGER.items())


def test_read_only_open_creates_nothing(dsn: str, settings: SessionDBConfig, connection: pymysql.Connection) -> None:
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


def test_every_table_has_a_primary_key(store: MySQLSessionDBProvider, connection: pymysql.Connection) -> None:
    without = rows_of(
        connection,
        """SELECT table_name FROM information_schema.tables t WHERE table_schema = DATABASE() AND NOT EXISTS (
               SELECT 1 FROM information_schema.statistics s WHERE s.table_schema = t.table_schema
               AND s.table_name = t.table_name AND s.index_name = 'PRIMARY')""",
    )
    assert without == []


def create_at_step(dsn: str, settings: SessionDBConfig, steps: int) -> None:
    """Create a store that has only the first migrations."""
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(schema, "LEDGER", dict(list(schema.LEDGER.items())[:steps]))
        MySQLSessionDBProvider(dsn, settings=settings).close()


def shape(connection: pymysql.Connection) -> list[str]:
    """The definitions of a database: the columns and keys of its tables, in any order, and its triggers."""
    found: list[str] = []
    for (table,) in rows_of(connection, "SHOW TABLES"):
        ((_, text),) = rows_of(connection, f"SHOW CREATE TABLE {table}")
        found += [f"{table}: {line.strip().rstrip(',')}" for line in text.splitlines()]
    triggers = rows_of(
        connection,
        "SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
    )
    return sorted([*found, *map(str, triggers)])


@pytest.mark.parametrize("steps", range(1, len(schema.LEDGER)))
def test_a_store_of_an_earlier_step_gets_the_remaining_migrations(
    dsn: str, settings: SessionDBConfig, connection: pymysql.Connection, steps: int
) -> None:
    create_at_step(dsn, settings, steps)
    before = shape(connection)
    with MySQLSessionDBProvider(dsn, settings=settings) as store:
        message_ids = say(store, start(store, "s"), "docker")
        assert ids(store.search_messages("docker")) == message_ids
        store.delete_session("s")
    upgraded = shape(connection)
    assert upgraded != before
    assert rows_of(connection, "SELECT name, checksum FROM hermes_ledger ORDER BY name") == list(schema.LEDGER.items())
    rows_of(connection, "SET foreign_key_checks = 0")
    for (table,) in rows_of(connection, "SHOW TABLES"):
        rows_of(connection, f"DROP TABLE {table}")
    MySQLSessionDBProvider(dsn, settings=settings).close()
    assert [without_counter(line) for line in shape(connection)] == [without_counter(line) for line in upgraded]


def without_counter(line: str) -> str:
    """A line of a definition without the next id of its table."""
    return re.sub(r" AUTO_INCREMENT=\d+", "", line)


class TestFirstVersion:
    """A store from before titles had owners."""

    @pytest.fixture(autouse=True)
    def _made(self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection) -> None:
        create_at_step(dsn, settings, 1)
        columns = "id, source, title, started_at, last_active, chain_active, active_tick"
        rows_of(connection, f"INSERT INTO sessions ({columns}) VALUES ('s', 'cli', 'Docker', 1, 1, 1, 100)")

    def test_first_version_is_upgraded(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        with MySQLSessionDBProvider(dsn, settings=settings) as store:
            row = store.get_session("s")
            assert row is not None
            assert (row["title"], row["imported_from"]) == ("Docker", None)
        key = rows_of(connection, "SHOW INDEX FROM sessions WHERE Key_name = 'idx_sessions_title_unique'")
        assert [column[4] for column in key] == ["title", "owner_key"]

    def test_first_version_is_read_without_an_upgrade(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        with MySQLSessionDBProvider(dsn, settings=settings, read_only=True) as store:
            row = store.get_session("s")
            assert row is not None
            assert row["imported_from"] is None
        assert rows_of(connection, "SELECT COUNT(*) FROM hermes_ledger") == [(1,)]

    def test_upgrade_without_its_ledger_entry_is_recorded(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        MySQLSessionDBProvider(dsn, settings=settings).close()
        rows_of(connection, "DELETE FROM hermes_ledger WHERE name <> '0001_store'")
        MySQLSessionDBProvider(dsn, settings=settings).close()
        assert rows_of(connection, "SELECT name, checksum FROM hermes_ledger") == list(schema.LEDGER.items())


class TestNewerVersion:
    """A store that another version has written to."""

    @pytest.fixture(autouse=True)
    def _made(self, dsn: str, settings: SessionDBConfig) -> None:
        MySQLSessionDBProvider(dsn, settings=settings).close()

    def test_newer_minimum_writer_allows_reading_only(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        note(connection, "min_writer", str(FORMAT + 1))
        with pytest.raises(StoreTooNew, match="read_only=True"):
            MySQLSessionDBProvider(dsn, settings=settings)
        with MySQLSessionDBProvider(dsn, settings=settings, read_only=True) as store:
            assert store.session_count() == 0

    def test_foreign_tables_are_refused(
        self, dsn: str, settings: SessionDBConfig, connection: pymysql.Connection
    ) -> None:
        rows_of(connection, "UPDATE hermes_ledger SET checksum = 'ff'")
        with pytest.raises(StoreError, match="different edition"):
            MySQLSessionDBProvider(dsn, settings=settings)


class TestWithFewRights:
    @pytest.fixture
    def guest(self, server: str, dsn: str) -> Iterator[str]:
        """A user who may only read the test's database."""
        database = dsn.partition("?")[0].rpartition("/")[2]
        with plain(server) as outside:
            rows_of(outside, "DROP USER IF EXISTS hermes_guest@localhost")
            rows_of(outside, "CREATE USER hermes_guest@localhost IDENTIFIED BY ''")
            rows_of(outside, f"GRANT SELECT ON {database}.* TO hermes_guest@localhost")
            yield in_database(server.replace("root@", "hermes_guest@"), database)
            rows_of(outside, "DROP USER hermes_guest@localhost")

    def test_missing_right_to_create_tables_is_an_error(self, guest: str, settings: SessionDBConfig) -> None:
        with pytest.raises(StoreReadOnly) as caught:
            MySQLSessionDBProvider(guest, settings=settings)
        assert "CREATE command denied" in str(caught.value)

    def test_store_of_another_user_can_be_read(
        self, guest: str, store: MySQLSessionDBProvider, settings: SessionDBConfig
    ) -> None:
        start(store, "s")
        message_ids = say(store, "s", "docker")
        with MySQLSessionDBProvider(guest, settings=settings, read_only=True) as reading:
            assert ids(reading.search_messages("docker")) == message_ids


def test_connection_refuses_a_server_with_backslash_escapes(connection: pymysql.Connection) -> None:
    from hermes.state.server.faults import ServerError

    with pytest.raises(ServerError, match="sql_mode"):
        DriverConnection(connection, ["SET SESSION sql_mode = 'ANSI'"])


def test_system_database_is_refused(server: str) -> None:
    with pytest.raises(ConfigError, match="server's own database") as caught:
        MySQLSessionDBProvider(in_database(server, "mysql"))
    assert "CREATE DATABASE" in caught.value.hint
