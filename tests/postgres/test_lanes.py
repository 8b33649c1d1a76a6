"""Lanes on PostgreSQL: how many round trips a turn takes, and notifications about waiting messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
import pytest

from hermes.config import SessionDBConfig
from hermes.state.lanes.queue import leases
from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.lanes import KEY, OTHER, accept, claim, reply, start_lane, turn_of
from tests.support.waiting import LIMIT_S


def test_the_bookkeeping_of_a_turn_takes_four_round_trips(
    store: PostgreSQLSessionDBProvider, round_trips: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_claims", count(1))  # every sixteenth claim of a process also looks for ended leases
    start_lane(store)
    for name in ("first", "second"):  # the first claim prepares statements
        accept(store, name)
        round_trips.clear()
        taken = store.turns.claim_next("n1", choose=turn_of_one)
        assert taken is not None
        store.turns.finish(taken.lease, turn_of(taken), intents=[reply(name)], lane={"last_prompt_tokens": 3})
    assert len(round_trips) <= 4
    assert [row["key"] for row in store.outbox.pending()] == ["first", "second"]


def test_an_idle_node_begins_no_transaction_that_writes(
    store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any]
) -> None:
    def next_transaction() -> int:
        row = connection.execute(b"SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
        assert row is not None
        return int(row[0])

    start_lane(store)
    begun = []
    for _ in range(10):  # other tests use the server too, so the quietest round counts
        before = next_transaction()
        for _ in range(20):
            assert store.turns.claim_next("n1") is None
            assert store.outbox.sending("n1") == []
            assert (store.outbox.next_due(), store.outbox.expire_due(), store.turns.end_leases("n1")) == (None, [], 0)
            assert store.turns.peek().ready_id == 0
        begun.append(next_transaction() - before)
    assert min(begun) < 20


@pytest.fixture
def heard(dsn: str, schema: str) -> Iterator[Any]:
    """A function that returns the payloads of the notifications since its last call."""
    with psycopg.connect(dsn, autocommit=True) as listening:
        listening.execute(b"LISTEN hermes_lanes")

        def payloads() -> list[str]:
            found = [each.payload for each in listening.notifies(timeout=0.05)]
            return [each.removeprefix(f"{schema}:") for each in found if each.startswith(f"{schema}:")]

        yield payloads


class TestNotifications:
    def test_only_the_first_message_that_waits_notifies(self, store: PostgreSQLSessionDBProvider, heard: Any) -> None:
        for name in "abc":
            accept(store, name)
        assert heard() == [""]

    def test_a_node_is_not_notified_about_its_own_lanes(self, store: PostgreSQLSessionDBProvider, heard: Any) -> None:
        accept(store, "a")
        heard()
        claim(store, "n1")
        accept(store, "b", node="n1")
        assert heard() == []

    def test_the_node_that_has_the_lane_is_named(self, store: PostgreSQLSessionDBProvider, heard: Any) -> None:
        accept(store, "a")
        heard()
        claim(store, "n1")
        accept(store, "b", node="n2")
        assert heard() == ["n1"]

    def test_a_released_lane_with_messages_notifies(self, store: PostgreSQLSessionDBProvider, heard: Any) -> None:
        accept(store, "a")
        taken = claim(store, "n1")
        heard()
        store.turns.release(taken.lease)
        assert heard() == [""]

    def test_an_interrupted_turn_notifies_if_the_lane_is_free(
        self, store: PostgreSQLSessionDBProvider, heard: Any
    ) -> None:
        accept(store, "a")
        taken = claim(store, "n1")
        heard()
        store.turns.interrupt(taken.lease, turn_of(taken), keep_lease=False)
        assert heard() == [""]

    def test_the_end_of_the_leases_of_a_dead_node_notifies(
        self, store: PostgreSQLSessionDBProvider, heard: Any
    ) -> None:
        accept(store, "a")
        claim(store, "n1")
        heard()
        store.turns.end_leases("n1")
        store.turns.end_leases("n1")
        assert heard() == [""]

    def test_a_message_that_is_not_stored_does_not_notify(self, store: PostgreSQLSessionDBProvider, heard: Any) -> None:
        accept(store, "a")
        heard()
        accept(store, "a", OTHER)
        assert heard() == []


def test_a_watch_wakes_when_a_message_comes(
    store: PostgreSQLSessionDBProvider, dsn: str, settings: SessionDBConfig
) -> None:
    woken: list[bool] = []
    watch = store.turns.watch("n1")
    assert watch._listener is not None
    assert not watch.wait(0.05)
    waiting = threading.Thread(target=lambda: woken.append(watch.wait(LIMIT_S)))
    waiting.start()
    with PostgreSQLSessionDBProvider(dsn, settings=settings) as other:
        accept(other, "a", KEY)
    waiting.join(LIMIT_S)
    assert woken == [True]
    watch.close()


def test_a_watch_survives_the_loss_of_its_connection(
    store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any]
) -> None:
    watch = store.turns.watch("n1")
    assert not watch.wait(0.05)
    connection.execute(
        b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN hermes_lanes%'"
    )
    assert not watch.wait(0.05)
    accept(store, "a")
    assert watch.wait(LIMIT_S)
    watch.close()
