"""Without settings for each transaction, a message is stored by one statement without BEGIN and COMMIT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hermes.config import SessionDBConfig
from hermes.errors import StoreBusy, StoreError
from hermes.state.postgres.connection.pipeline import DriverConnection
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.server.faults import ConnectionLost
from tests.support.conversations import contents, say, start

SETTINGS = SessionDBConfig(provider="postgresql", write_timeout_s=2)


@pytest.fixture
def place(dsn: str, connection: psycopg.Connection[Any], schema: str) -> str:
    """A DSN whose connections use the schema of the test, without a setting of the store."""
    connection.execute(f"CREATE SCHEMA {schema}; SET search_path TO {schema}".encode())
    return make_conninfo(dsn, options=f"-c search_path={schema}")


@pytest.fixture
def store(place: str) -> Iterator[PostgreSQLSessionDBProvider]:
    """A store with one message in its session `s`."""
    with PostgreSQLSessionDBProvider(place, settings=SETTINGS) as opened:
        say(opened, start(opened, "s"), "first")
        yield opened


def count_statements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of statements in each round trip from now on."""
    counts: list[int] = []
    execute = DriverConnection.execute

    def count(self: DriverConnection, statements: Any, *rest: Any) -> Any:
        counts.append(len(statements))
        return execute(self, statements, *rest)

    monkeypatch.setattr(DriverConnection, "execute", count)
    return counts


def test_simple_message_is_one_statement(store: PostgreSQLSessionDBProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = count_statements(monkeypatch)
    store.append_message("s", "user", "second")
    assert counts == [1]
    assert contents(store.get_messages("s")) == ["first", "second"]


def test_other_isolation_level_needs_a_transaction(place: str, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = make_conninfo(place, options=f"-c search_path={schema} -c default_transaction_isolation=serializable")
    with PostgreSQLSessionDBProvider(strict, settings=SETTINGS) as store:
        say(store, start(store, "s"), "first")
        counts = count_statements(monkeypatch)
        store.append_message("s", "user", "second")
        assert counts == [3]
        assert contents(store.get_messages("s")) == ["first", "second"]


def test_message_is_refused_if_its_transaction_fails_at_the_end(
    store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any]
) -> None:
    connection.execute(
        b"""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION 'refused';
            END $$;
            CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION refuse()"""
    )
    with pytest.raises(StoreError, match="refused"):
        store.append_message("s", "user", "second")
    connection.execute(b"DROP TRIGGER refuse ON messages")
    assert contents(store.get_messages("s")) == ["first"]
    store.append_message("s", "user", "third")
    assert contents(store.get_messages("s")) == ["first", "third"]


@pytest.mark.parametrize("is_executed", [False, True], ids=["the statement is lost", "its response is lost"])
def test_message_is_stored_once_if_the_connection_breaks(
    store: PostgreSQLSessionDBProvider, monkeypatch: pytest.MonkeyPatch, is_executed: bool
) -> None:
    execute = DriverConnection.execute

    def break_once(self: DriverConnection, statements: Any, *rest: Any) -> Any:
        monkeypatch.setattr(DriverConnection, "execute", execute)
        if is_executed:
            execute(self, statements, *rest)
        self.is_sound = False
        raise ConnectionLost("the line is cut")

    monkeypatch.setattr(DriverConnection, "execute", break_once)
    message_id = store.append_message("s", "user", "second")
    messages = store.get_messages("s")
    assert contents(messages) == ["first", "second"]
    assert messages[-1]["id"] == message_id


def test_message_that_waits_too_long_is_not_stored(store: PostgreSQLSessionDBProvider, place: str) -> None:
    with psycopg.connect(place) as other:
        other.execute(b"SELECT 1 FROM sessions WHERE id = 's' FOR UPDATE")
        with pytest.raises(StoreBusy):
            store.append_message("s", "user", "second")
    assert contents(store.get_messages("s")) == ["first"]
    store.append_message("s", "user", "third")
    assert contents(store.get_messages("s")) == ["first", "third"]
