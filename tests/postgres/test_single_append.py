"""A message that is stored in one statement has the same effects as one that is stored in a transaction of several."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from hermes.errors import NotFound
from hermes.state.engine import Transaction
from hermes.state.owner import owner_of
from hermes.state.postgres.connection.pipeline import DriverConnection
from hermes.state.postgres.engine import PostgresEngine
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.conversations import CALLS, contents, ids, say, session_of, start
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S, wait_until

GATE = 734_211
"""An advisory lock at which a message waits after it has got its id."""


@pytest.fixture
def filled(store: PostgreSQLSessionDBProvider) -> PostgreSQLSessionDBProvider:
    """A store with one message in its session `s`."""
    say(store, start(store, "s"), "first")
    return store


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of statements in each round trip."""
    counts: list[int] = []
    execute = DriverConnection.execute

    def count(self: DriverConnection, statements: Any, *rest: Any) -> Any:
        counts.append(len(statements))
        return execute(self, statements, *rest)

    monkeypatch.setattr(DriverConnection, "execute", count)
    return counts


def postgres_engine(store: PostgreSQLSessionDBProvider) -> PostgresEngine:
    """The engine under a store."""
    engine = engine_of(store)
    assert isinstance(engine, PostgresEngine)
    return engine


class TestRoundTrips:
    @pytest.mark.parametrize(
        "fields",
        [
            {"role": "user", "content": "second"},
            {"role": "assistant", "content": None, "reasoning": "why"},
            {"role": "tool", "content": "[]", "tool_name": "terminal", "tool_call_id": "c1"},
            {"role": "user", "content": "a\0b \ud800", "token_count": 7, "observed": True, "timestamp": 4e9},
            {"role": "user", "content": "x", "platform_message_id": "5", "finish_reason": "stop"},
        ],
    )
    def test_simple_message_takes_one_round_trip(
        self, filled: PostgreSQLSessionDBProvider, round_trips: list[int], fields: dict[str, Any]
    ) -> None:
        message_id = filled.append_message("s", **fields)
        assert len(round_trips) == 1
        stored = filled.get_messages("s")[-1]
        assert stored["id"] == message_id
        for name in fields.keys() - {"content"}:
            assert stored[name] == fields[name]  # type: ignore[literal-required]

    @pytest.mark.parametrize(
        "fields",
        [{"tool_calls": CALLS}, {"uid": "mine"}, {"timestamp": 5.0}],
        ids=["tool calls", "a uid of the caller", "an earlier time"],
    )
    def test_other_message_takes_a_transaction(
        self, filled: PostgreSQLSessionDBProvider, round_trips: list[int], fields: dict[str, Any]
    ) -> None:
        filled.append_message("s", "assistant", "second", **fields)
        assert len(round_trips) > 1
        assert contents(filled.get_messages("s")) == ["first", "second"]

    def test_unknown_session_is_an_error(self, filled: PostgreSQLSessionDBProvider) -> None:
        with pytest.raises(NotFound):
            filled.append_message("t", "user", "second")


class TestEffects:
    def test_session_is_the_same_as_after_a_transaction(
        self, store: PostgreSQLSessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for session_id in ("one", "several"):
            if session_id == "several":
                monkeypatch.setattr(PostgresEngine, "append_alone", lambda *_: None)
            started = start(store, session_id, started_at=1_000.0)
            for number, role in enumerate(("assistant", "user", "user", "tool")):
                store.append_message(started, role, f"text {number}", timestamp=4e9 + number / 300)
            store.append_message(started, "user", "before", timestamp=4e9 - 60)
            store.append_message(started, "user", "after", timestamp=4e9 + 60)
        one, several = ({**session_of(store, each)} for each in ("one", "several"))
        assert {**one, "id": None} == {**several, "id": None}
        assert (one["message_count"], one["preview"], one["last_active"]) == (6, "text 1", 4e9 + 60)
        assert [each["id"] for each in store.list_sessions_rich(order_by_last_active=True)] == ["several", "one"]

    def test_later_part_of_a_chain_makes_the_first_one_active(self, filled: PostgreSQLSessionDBProvider) -> None:
        filled.compress_session("s", "t", "a summary", tail_from=1_000_000)
        moment = 4e9
        filled.append_message("t", "user", "second", timestamp=moment)
        filled.append_message("t", "user", "third", timestamp=moment + 1)
        (listed,) = filled.list_sessions_rich(order_by_last_active=True)
        assert listed["last_active"] == moment + 1

    def test_session_of_another_owner_is_unknown(self, store: PostgreSQLSessionDBProvider) -> None:
        start(store, "s", source="telegram", user_id="1")
        store.append_message("s", "user", "first")
        with pytest.raises(NotFound):
            store.for_owner(owner_of("telegram", "2")).append_message("s", "user", "second")
        store.for_owner(owner_of("telegram", "1")).append_message("s", "user", "third")
        assert contents(store.get_messages("s")) == ["first", "third"]

    def test_message_inside_of_a_transaction_is_rolled_back_with_it(self, filled: PostgreSQLSessionDBProvider) -> None:
        def fail(_: Transaction) -> None:
            filled.append_message("s", "user", "second")
            raise KeyError

        with pytest.raises(KeyError):
            engine_of(filled).write(fail)
        assert contents(filled.get_messages("s")) == ["first"]


def test_index_waits_for_a_message_that_has_its_id(
    filled: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any], schema: str
) -> None:
    connection.execute(
        f"""SET search_path TO {schema};
            CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM pg_advisory_xact_lock_shared({GATE}); RETURN NEW;
            END $$;
            CREATE TRIGGER wait_at_gate BEFORE INSERT ON messages
                FOR EACH ROW WHEN (NEW.content = 'lantern') EXECUTE FUNCTION wait_at_gate();
            SELECT pg_advisory_lock({GATE})""".encode()
    )
    say(filled, start(filled, "t"), "first")
    adding = threading.Thread(target=filled.append_message, args=("t", "user", "lantern"))
    adding.start()
    try:
        waits = f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = {GATE} AND NOT granted"
        wait_until(lambda: connection.execute(waits.encode()).fetchone() is not None, "the message to wait")
        (last,) = say(filled, "s", "second")
        postgres_engine(filled).catch_up()
        assert postgres_engine(filled).waiting_for_index() > 0
    finally:
        connection.execute(f"SELECT pg_advisory_unlock({GATE})".encode())
        adding.join(LIMIT_S)
    postgres_engine(filled).catch_up()
    assert postgres_engine(filled).waiting_for_index() == 0
    assert ids(filled.search_messages("lantern")) == [last - 1]
