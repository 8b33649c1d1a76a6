"""Messages get their ids before they are sent: order, errors and the index are the same as without that."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from hermes.config import PostgreSQLConfig, SessionDBConfig
from hermes.errors import HermesError, StoreBusy
from hermes.state.engine import Transaction
from hermes.state.messages.appending import add_messages
from hermes.state.messages.drafts import draft_message
from hermes.state.owner import EVERYBODY
from hermes.state.postgres.connection.transaction import MANY, MUCH
from hermes.state.postgres.engine import PostgresEngine
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.conversations import contents, ids, say, session_of, start
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S

HOLD = "SELECT message_count FROM sessions WHERE id = :id FOR NO KEY UPDATE"


@pytest.fixture
def filled(store: PostgreSQLSessionDBProvider) -> PostgreSQLSessionDBProvider:
    """A store with two messages in its session `s`."""
    start(store, "s")
    say(store, "s", "one", "two")
    return store


@pytest.fixture
def blocked(filled: PostgreSQLSessionDBProvider, dsn: str, schema: str) -> Iterator[psycopg.Connection[Any]]:
    """Another program that blocks adding messages."""
    with psycopg.connect(dsn) as other:
        other.execute(f"LOCK TABLE {schema}.messages IN SHARE MODE".encode())
        yield other
        other.rollback()


class TestNumbers:
    def test_ids_are_assigned_after_the_session_is_locked(self, filled: PostgreSQLSessionDBProvider) -> None:
        has_turn, may_end = threading.Event(), threading.Event()
        first: list[int] = []

        def slow(tx: Transaction) -> None:
            first.extend(
                add_messages(tx, "s", [draft_message({"role": "user", "content": "three"}, time.time())], EVERYBODY)
            )
            has_turn.set()
            assert may_end.wait(LIMIT_S)

        holding = threading.Thread(target=engine_of(filled).write, args=(slow,))
        holding.start()
        assert has_turn.wait(LIMIT_S)
        releasing = threading.Timer(0.2, may_end.set)
        releasing.start()
        second = filled.append_message("s", "user", "four")
        holding.join(LIMIT_S)
        assert first[0] < second
        assert contents(filled.get_messages("s")) == ["one", "two", "three", "four"]

    def test_each_message_gets_one_id(self, filled: PostgreSQLSessionDBProvider) -> None:
        held = engine_of(filled).write(lambda tx: [tx.lock_and_number(HOLD, count, id="s") for count in (1, 3, 0)])
        assert [row for row, _ in held] == [(2,)] * 3
        assert [len(numbers) for _, numbers in held] == [1, 3, 0]
        given = [number for _, numbers in held for number in numbers]
        assert given == sorted(set(given))

    def test_unknown_session_gets_no_ids(self, filled: PostgreSQLSessionDBProvider) -> None:
        assert (
            engine_of(filled).write(lambda tx: [tx.lock_and_number(HOLD, count, id="t") for count in (1, 2)])
            == [(None, ())] * 2
        )

    @pytest.mark.parametrize("count", [1, MANY - 1, MANY, 2 * MANY + 1])
    def test_ids_match_their_messages_for_any_number_of_them(
        self, filled: PostgreSQLSessionDBProvider, count: int
    ) -> None:
        made = filled.append_messages("s", [{"role": "user", "content": f"{number}"} for number in range(count)])
        stored = filled.get_messages("s")[2:]
        assert ids(stored) == made
        assert contents(stored) == [f"{number}" for number in range(count)]

    def test_ids_match_their_messages_for_any_length(self, filled: PostgreSQLSessionDBProvider) -> None:
        texts = ["x" * (MUCH // 2), "y" * (2 * MUCH), "z"]
        made = filled.append_messages("s", [{"role": "user", "content": text} for text in texts])
        assert [(each["id"], each["content"]) for each in filled.get_messages("s")[2:]] == list(
            zip(made, texts, strict=True)
        )

    def test_ids_of_repeated_messages_are_not_used(self, filled: PostgreSQLSessionDBProvider) -> None:
        first = filled.append_message("s", "user", "three", uid="u")
        again = [{"role": "user", "content": text, "uid": uid} for text, uid in (("x", "u"), ("y", "v"), ("z", "v"))]
        made = filled.append_messages("s", again)
        assert made[0] == first
        assert made[1] == made[2] > first
        assert contents(filled.get_messages("s")) == ["one", "two", "three", "y"]
        assert session_of(filled, "s")["message_count"] == 4


class TestDelayedStatements:
    @pytest.mark.parametrize(
        "sql",
        [
            "INSERT INTO messages (id, session_id, role, timestamp) SELECT MIN(id), 's', 'user', 1.0 FROM messages",
            "INSERT INTO messages (session_id, role, timestamp) VALUES ('s', NULL, 1.0)",
            "INSERT INTO messages (session_id, role, timestamp) VALUES ('nowhere', 'user', 1.0)",
            "UPDATE sessions SET message_count = CAST('nine' AS bigint)",
            "UPDATE nonsense SET a = 1",
        ],
    )
    def test_delayed_statement_fails_like_a_direct_one_and_rolls_back(
        self, filled: PostgreSQLSessionDBProvider, sql: str
    ) -> None:
        def error_of(name: str) -> tuple[type[HermesError], str]:
            def work(tx: Transaction) -> None:
                tx.lock_and_number(HOLD, 1, id="s")
                tx.send("UPDATE sessions SET message_count = 77 WHERE id = 's'")
                getattr(tx, name)(sql)

            with pytest.raises(HermesError) as caught:
                engine_of(filled).write(work)
            return type(caught.value), caught.value.message

        assert error_of("send") == error_of("run")
        assert session_of(filled, "s")["message_count"] == 2
        say(filled, "s", "three")
        assert contents(filled.get_messages("s")) == ["one", "two", "three"]

    def test_delayed_statement_obeys_the_write_timeout(
        self, blocked: psycopg.Connection[Any], dsn: str, settings: SessionDBConfig
    ) -> None:
        with PostgreSQLSessionDBProvider(dsn, settings=replace(settings, write_timeout_s=0.3)) as hasty:
            with pytest.raises(StoreBusy) as caught:
                hasty.append_message("s", "user", "three")
            assert caught.value.retryable
            blocked.rollback()
            assert contents(hasty.get_messages("s")) == ["one", "two"]
            hasty.append_message("s", "user", "three")
            assert contents(hasty.get_messages("s")) == ["one", "two", "three"]

    @pytest.mark.parametrize("limit", [PostgreSQLConfig(statement_timeout_s=0.1), PostgreSQLConfig(lock_timeout_s=0.1)])
    def test_delayed_statement_obeys_the_lock_timeout_of_the_server(
        self, blocked: psycopg.Connection[Any], dsn: str, settings: SessionDBConfig, limit: PostgreSQLConfig
    ) -> None:
        own = replace(settings, write_timeout_s=0.5, postgresql=limit)
        with PostgreSQLSessionDBProvider(dsn, settings=own) as hasty, pytest.raises(StoreBusy):
            hasty.append_message("s", "user", "three")


def test_index_waits_for_an_id_that_was_assigned(
    filled: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any], schema: str
) -> None:
    start(filled, "t")
    engine = engine_of(filled)
    assert isinstance(engine, PostgresEngine)
    has_number, may_end = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> None:
        add_messages(tx, "t", [draft_message({"role": "user", "content": "lantern"}, time.time())], EVERYBODY)
        has_number.set()
        assert may_end.wait(LIMIT_S)

    def mark() -> tuple[Any, ...] | None:
        query = f"SELECT value FROM {schema}.state_meta WHERE key = 'indexed_upto'"
        return connection.execute(query.encode()).fetchone()

    holding = threading.Thread(target=engine.write, args=(slow,))
    holding.start()
    try:
        assert has_number.wait(LIMIT_S)
        (last,) = say(filled, "s", "three")
        engine.catch_up()
        assert mark() == ("0",)
    finally:
        may_end.set()
        holding.join(LIMIT_S)
    engine.catch_up()
    assert mark() == (str(last),)
    assert ids(filled.search_messages("lantern")) == [last - 1]
