"""A store is made once, however many open it at once; what is not ours to touch is left alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from hermes.config import SessionDBConfig
from hermes.errors import ConfigError, StoreError, StoreReadOnly, StoreTooNew, StoreUnavailable
from hermes.state.engine import Capability
from hermes.state.postgres import schema as tables
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.server.ledger import FORMAT, SchemaState, checksum
from tests.support.conversations import ids, say, start
from tests.upgrade.checks import environment

OPENERS = 5


def tables_of(connection: psycopg.Connection[Any], schema: str) -> set[str]:
    """The names of the tables in a schema."""
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
    return {name for (name,) in rows}


def note(connection: psycopg.Connection[Any], schema: str, key: str, value: str) -> None:
    """Write a note of the store by plain SQL."""
    connection.execute(f"UPDATE {schema}.state_meta SET value = %s WHERE key = %s".encode(), [value, key])


@pytest.mark.parametrize("name", tables.ADDITIONS)
def test_an_addition_is_what_its_checksum_says(name: str) -> None:
    assert tables.LEDGER[name] == checksum(tables.script(name))


def test_every_addition_has_a_checksum() -> None:
    assert list(tables.ADDITIONS) == list(tables.LEDGER)


def test_processes_that_open_a_new_store_at_once_make_it_once(
    dsn: str, schema: str, connection: psycopg.Connection[Any]
) -> None:
    program = f"""
from hermes.config import SessionDBConfig
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
settings = SessionDBConfig(provider="postgresql", schema={schema!r})
with PostgreSQLSessionDBProvider({dsn!r}, settings=settings) as store:
    store.create_session("s", "cli")
    store.append_message("s", "user", "hello")
"""
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=environment(), stderr=subprocess.PIPE, text=True)
        for _ in range(OPENERS)
    ]
    told = [each.communicate(timeout=60)[1] for each in running]
    assert [each.returncode for each in running] == [0] * OPENERS, told
    assert connection.execute(f"SELECT count(*) FROM {schema}.hermes_ledger".encode()).fetchone() == (
        len(tables.LEDGER),
    )
    assert connection.execute(f"SELECT count(*) FROM {schema}.messages".encode()).fetchone() == (OPENERS,)


def test_what_fails_in_the_middle_leaves_nothing_behind(
    dsn: str,
    settings: SessionDBConfig,
    schema: str,
    connection: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = tables.script("0001_store")
    monkeypatch.setattr(tables, "script", lambda _: f"{whole}\nSELECT nonsense();")
    with pytest.raises(StoreError):
        PostgreSQLSessionDBProvider(dsn, settings=settings)
    assert tables_of(connection, schema) == set()


def test_reading_makes_nothing(dsn: str, settings: SessionDBConfig, connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(StoreUnavailable, match="no session store"):
        PostgreSQLSessionDBProvider(dsn, settings=settings, read_only=True)
    assert connection.execute("SELECT to_regnamespace(%s)", [settings.schema]).fetchone() == (None,)


def test_status_tells_what_there_is(
    store: PostgreSQLSessionDBProvider, schema: str, connection: psycopg.Connection[Any]
) -> None:
    status = tables.inspect(connection, schema)
    assert (status.state, status.version, status.pending) == (SchemaState.CURRENT, tables.SCHEMA_VERSION, [])
    assert tables.inspect(connection, "nowhere").pending == list(tables.ADDITIONS)


class TestOfTheFirstVersion:
    """A store that knows no owner of a title yet."""

    @pytest.fixture(autouse=True)
    def _made(self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=settings) as store:
            store.create_session("s", "cli")
            store.set_session_title("s", "Docker")
        for statement in (
            f"DROP INDEX {schema}.idx_sessions_title_unique",
            f"ALTER TABLE {schema}.sessions DROP COLUMN imported_from",
            f"CREATE UNIQUE INDEX idx_sessions_title_unique ON {schema}.sessions (title) WHERE title IS NOT NULL",
            f"DELETE FROM {schema}.hermes_ledger WHERE name <> '0001_store'",
        ):
            connection.execute(statement.encode())

    def test_gets_what_it_lacks(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=settings) as store:
            row = store.get_session("s")
            assert row is not None
            assert (row["title"], row["imported_from"]) == ("Docker", None)
        index = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND indexname = 'idx_sessions_title_unique'",
            [schema],
        ).fetchone()
        assert index is not None
        assert "UNIQUE" in index[0]
        assert "owner" in index[0]

    def test_is_read_as_it_is(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=settings, read_only=True) as store:
            row = store.get_session("s")
            assert row is not None
            assert row["imported_from"] is None
        assert connection.execute(f"SELECT count(*) FROM {schema}.hermes_ledger".encode()).fetchone() == (1,)


class TestOfAnotherVersion:
    """A store that another version has written to."""

    @pytest.fixture(autouse=True)
    def _made(self, dsn: str, settings: SessionDBConfig) -> None:
        PostgreSQLSessionDBProvider(dsn, settings=settings).close()

    def test_that_only_it_may_write_is_only_read(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        note(connection, schema, "min_writer", str(FORMAT + 1))
        with pytest.raises(StoreTooNew, match="read_only=True"):
            PostgreSQLSessionDBProvider(dsn, settings=settings)
        with PostgreSQLSessionDBProvider(dsn, settings=settings, read_only=True) as store:
            assert store.session_count() == 0

    def test_that_only_it_can_read_is_refused(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        note(connection, schema, "min_reader", str(FORMAT + 1))
        with pytest.raises(StoreTooNew):
            PostgreSQLSessionDBProvider(dsn, settings=settings, read_only=True)

    def test_with_an_addition_that_does_no_harm_is_used(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        connection.execute(f"INSERT INTO {schema}.hermes_ledger VALUES ('0099_later', 'ff', 0)".encode())
        with PostgreSQLSessionDBProvider(dsn, settings=settings) as store:
            store.create_session("s", "cli")

    def test_with_other_tables_is_refused(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        connection.execute(f"UPDATE {schema}.hermes_ledger SET checksum = 'ff'".encode())
        with pytest.raises(StoreError, match="different edition"):
            PostgreSQLSessionDBProvider(dsn, settings=settings)


class TestWithFewRights:
    """A user who may use a schema of his own, and nothing else."""

    @pytest.fixture
    def place(self, dsn: str, connection: psycopg.Connection[Any]) -> Iterator[str]:
        """A database without the extension, in which he may not have one."""
        connection.execute("DROP DATABASE IF EXISTS hermes_few_rights")
        connection.execute("DROP ROLE IF EXISTS hermes_guest")
        connection.execute("CREATE DATABASE hermes_few_rights")
        connection.execute("CREATE ROLE hermes_guest LOGIN")
        made = psycopg.conninfo.make_conninfo(dsn, dbname="hermes_few_rights")
        with psycopg.connect(made, autocommit=True) as inside:
            inside.execute("CREATE SCHEMA own AUTHORIZATION hermes_guest")
        yield psycopg.conninfo.make_conninfo(made, user="hermes_guest")
        connection.execute("DROP DATABASE hermes_few_rights WITH (FORCE)")
        connection.execute("DROP ROLE hermes_guest")

    def test_parts_of_words_are_found_without_the_extension(self, place: str) -> None:
        with PostgreSQLSessionDBProvider(place, settings=SessionDBConfig("postgresql", schema="own")) as store:
            assert store.capabilities == {Capability.SERVER}
            start(store, "s")
            found = say(store, "s", "dockerfile", "podman")
        with PostgreSQLSessionDBProvider(place, settings=SessionDBConfig("postgresql", schema="own")) as store:
            results = store.search_messages("*ckerfi*")
            assert (ids(results), results.complete) == (found[:1], True)

    def test_what_he_may_not_make_is_told(self, place: str) -> None:
        with pytest.raises(StoreReadOnly) as caught:
            PostgreSQLSessionDBProvider(place, settings=SessionDBConfig("postgresql", schema="elsewhere"))
        assert caught.value.hint


def test_text_that_is_not_unicode_is_refused(
    dsn: str, settings: SessionDBConfig, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("DROP DATABASE IF EXISTS hermes_latin")
    connection.execute("CREATE DATABASE hermes_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(ConfigError, match="LATIN1"):
            PostgreSQLSessionDBProvider(psycopg.conninfo.make_conninfo(dsn, dbname="hermes_latin"), settings=settings)
    finally:
        connection.execute("DROP DATABASE hermes_latin")


def test_a_store_in_the_usual_schema_needs_no_name(private_dsn: str) -> None:
    with PostgreSQLSessionDBProvider(private_dsn) as store:
        store.create_session("s", "cli")
        assert store.session_count() == 1


@pytest.fixture
def private_dsn(dsn: str, connection: psycopg.Connection[Any]) -> Iterator[str]:
    """A database for one test alone."""
    connection.execute("DROP DATABASE IF EXISTS hermes_alone")
    connection.execute("CREATE DATABASE hermes_alone")
    yield psycopg.conninfo.make_conninfo(dsn, dbname="hermes_alone")
    connection.execute("DROP DATABASE hermes_alone WITH (FORCE)")


def test_schemas_know_nothing_of_each_other(dsn: str, settings: SessionDBConfig, schema: str) -> None:
    other = replace(settings, schema=f"{schema}_other")
    with (
        PostgreSQLSessionDBProvider(dsn, settings=settings) as one,
        PostgreSQLSessionDBProvider(dsn, settings=other) as two,
    ):
        try:
            start(one, "s")
            say(one, "s", "docker")
            assert (two.session_count(), two.search_messages("docker")) == (0, [])
        finally:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(f"DROP SCHEMA {schema}_other CASCADE".encode())
