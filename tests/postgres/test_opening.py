"""A store is created once, however many processes open it at once; other tables are left alone."""

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
from hermes.state.server.ledger import FORMAT, SchemaState
from tests.support.conversations import ids, say, start
from tests.upgrade.checks import environment

OPENERS = 5


def tables_of(connection: psycopg.Connection[Any], schema: str) -> set[str]:
    """The names of the tables in a schema."""
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
    return {name for (name,) in rows}


def note(connection: psycopg.Connection[Any], schema: str, key: str, value: str) -> None:
    """Set a value in `state_meta` by plain SQL."""
    connection.execute(f"UPDATE {schema}.state_meta SET value = %s WHERE key = %s".encode(), [value, key])


def test_processes_that_open_a_new_store_at_once_create_it_once(
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
    outputs = [each.communicate(timeout=60)[1] for each in running]
    assert [each.returncode for each in running] == [0] * OPENERS, outputs
    assert connection.execute(f"SELECT count(*) FROM {schema}.hermes_ledger".encode()).fetchone() == (
        len(tables.LEDGER),
    )
    assert connection.execute(f"SELECT count(*) FROM {schema}.messages".encode()).fetchone() == (OPENERS,)


def test_failed_creation_leaves_no_tables(
    dsn: str,
    settings: SessionDBConfig,
    schema: str,
    connection: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = tables.MIGRATIONS["0001_store"]
    monkeypatch.setitem(tables.MIGRATIONS, "0001_store", first._replace(script=f"{first.script}\nSELECT nonsense();"))
    with pytest.raises(StoreError):
        PostgreSQLSessionDBProvider(dsn, settings=settings)
    assert tables_of(connection, schema) == set()


def test_read_only_open_creates_nothing(
    dsn: str, settings: SessionDBConfig, connection: psycopg.Connection[Any]
) -> None:
    with pytest.raises(StoreUnavailable, match="no session store"):
        PostgreSQLSessionDBProvider(dsn, settings=settings, read_only=True)
    assert connection.execute("SELECT to_regnamespace(%s)", [settings.schema]).fetchone() == (None,)


def test_status_describes_the_schema(
    store: PostgreSQLSessionDBProvider, schema: str, connection: psycopg.Connection[Any]
) -> None:
    status = tables.inspect(connection, schema)
    assert (status.state, status.version, status.pending) == (SchemaState.CURRENT, tables.SCHEMA_VERSION, [])
    assert tables.inspect(connection, "nowhere").pending == list(tables.MIGRATIONS)


def create_at_step(connection: psycopg.Connection[Any], schema: str, steps: int) -> None:
    """Create a store that has only the first migrations."""
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(tables, "LEDGER", dict(list(tables.LEDGER.items())[:steps]))
        tables.apply_pending(connection, schema)


def shape(connection: psycopg.Connection[Any], schema: str) -> list[tuple[Any, ...]]:
    """The definitions of a schema: columns, constraints, indexes, triggers and functions."""
    found: list[tuple[Any, ...]] = []
    for query in (
        """SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default, is_identity
           FROM information_schema.columns WHERE table_schema = %s""",
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = %s::regnamespace",
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = %s",
        """SELECT t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
           WHERE NOT t.tgisinternal AND c.relnamespace = %s::regnamespace""",
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = %s::regnamespace",
    ):
        found += connection.execute(query.encode(), [schema]).fetchall()
    return sorted(found, key=repr)


@pytest.mark.parametrize("steps", range(1, len(tables.LEDGER)))
def test_a_store_of_an_earlier_step_gets_the_remaining_migrations(
    dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any], steps: int
) -> None:
    PostgreSQLSessionDBProvider(dsn, settings=settings).close()
    fresh = shape(connection, schema)
    connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    create_at_step(connection, schema, steps)
    names = connection.execute(f"SELECT name FROM {schema}.hermes_ledger".encode()).fetchall()
    assert len(names) == steps
    with PostgreSQLSessionDBProvider(dsn, settings=settings) as store:
        message_ids = say(store, start(store, "s"), "docker")
        assert ids(store.search_messages("docker")) == message_ids
    assert shape(connection, schema) == fresh
    ledger = connection.execute(f"SELECT name, checksum FROM {schema}.hermes_ledger ORDER BY name".encode()).fetchall()
    assert ledger == list(tables.LEDGER.items())


class TestFirstVersion:
    """A store from before titles had owners."""

    @pytest.fixture(autouse=True)
    def _made(self, schema: str, connection: psycopg.Connection[Any]) -> None:
        create_at_step(connection, schema, 1)
        columns = "id, source, title, started_at, last_active, chain_active, active_tick"
        connection.execute(
            f"INSERT INTO {schema}.sessions ({columns}) VALUES ('s', 'cli', 'Docker', 1, 1, 1, 100)".encode()
        )

    def test_first_version_is_upgraded(
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

    def test_first_version_is_read_without_an_upgrade(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=settings, read_only=True) as store:
            row = store.get_session("s")
            assert row is not None
            assert row["imported_from"] is None
        assert connection.execute(f"SELECT count(*) FROM {schema}.hermes_ledger".encode()).fetchone() == (1,)


class TestNewerVersion:
    """A store that another version has written to."""

    @pytest.fixture(autouse=True)
    def _made(self, dsn: str, settings: SessionDBConfig) -> None:
        PostgreSQLSessionDBProvider(dsn, settings=settings).close()

    def test_newer_minimum_writer_allows_reading_only(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        note(connection, schema, "min_writer", str(FORMAT + 1))
        with pytest.raises(StoreTooNew, match="read_only=True"):
            PostgreSQLSessionDBProvider(dsn, settings=settings)
        with PostgreSQLSessionDBProvider(dsn, settings=settings, read_only=True) as store:
            assert store.session_count() == 0

    def test_newer_minimum_reader_is_refused(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        note(connection, schema, "min_reader", str(FORMAT + 1))
        with pytest.raises(StoreTooNew):
            PostgreSQLSessionDBProvider(dsn, settings=settings, read_only=True)

    def test_unknown_ledger_entry_is_accepted(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        connection.execute(f"INSERT INTO {schema}.hermes_ledger VALUES ('0099_later', 'ff', 0)".encode())
        with PostgreSQLSessionDBProvider(dsn, settings=settings) as store:
            store.create_session("s", "cli")
            assert store.get_session("s") is not None

    def test_foreign_tables_are_refused(
        self, dsn: str, settings: SessionDBConfig, schema: str, connection: psycopg.Connection[Any]
    ) -> None:
        connection.execute(f"UPDATE {schema}.hermes_ledger SET checksum = 'ff'".encode())
        with pytest.raises(StoreError, match="different edition"):
            PostgreSQLSessionDBProvider(dsn, settings=settings)


class TestWithFewRights:
    """A user who may use only one schema."""

    @pytest.fixture
    def place(self, dsn: str, connection: psycopg.Connection[Any]) -> Iterator[str]:
        """A database without the extension, which the user may not install."""
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
        with PostgreSQLSessionDBProvider(place, settings=SessionDBConfig(provider="postgresql", schema="own")) as store:
            assert store.capabilities == {Capability.SERVER}
            start(store, "s")
            found = say(store, "s", "dockerfile", "podman")
        with PostgreSQLSessionDBProvider(place, settings=SessionDBConfig(provider="postgresql", schema="own")) as store:
            results = store.search_messages("*ckerfi*")
            assert (ids(results), results.complete) == (found[:1], True)

    def test_missing_right_to_create_tables_is_an_error(self, place: str) -> None:
        with pytest.raises(StoreReadOnly) as caught:
            PostgreSQLSessionDBProvider(place, settings=SessionDBConfig(provider="postgresql", schema="elsewhere"))
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


def test_default_schema_needs_no_name(private_dsn: str) -> None:
    with PostgreSQLSessionDBProvider(private_dsn) as store:
        store.create_session("s", "cli")
        assert store.session_count() == 1


@pytest.fixture
def private_dsn(dsn: str, connection: psycopg.Connection[Any]) -> Iterator[str]:
    """A database for one test."""
    connection.execute("DROP DATABASE IF EXISTS hermes_alone")
    connection.execute("CREATE DATABASE hermes_alone")
    yield psycopg.conninfo.make_conninfo(dsn, dbname="hermes_alone")
    connection.execute("DROP DATABASE hermes_alone WITH (FORCE)")


def test_stores_in_two_schemas_are_separate(dsn: str, settings: SessionDBConfig, schema: str) -> None:
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
