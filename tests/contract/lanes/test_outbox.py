"""The outbox and connector leases: a message is stored before it is sent, and never sent twice in silence."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue, StaleLease
from hermes.state.lanes.types import OutboxRow
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import KEY, OTHER, accept, claim, end_leases, reply, turn_of


def keys(rows: list[OutboxRow]) -> list[str]:
    """The keys of messages."""
    return [row["key"] for row in rows]


class TestIntents:
    def test_a_repeated_key_returns_the_first_message(self, store: SessionDBProvider) -> None:
        first = store.outbox.intend(reply("k", session_key=KEY))
        assert store.outbox.intend(reply("k", session_key=OTHER)) == first == store.outbox.find("k")
        assert (first["state"], first["session_key"], first["payload"]) == ("pending", KEY, {"text": "k"})
        assert store.outbox.get(first["id"]) == first
        assert (store.outbox.get(99), store.outbox.find("other")) == (None, None)

    @pytest.mark.parametrize("key", ["x" * 10_000, "a\0b", "\ud800"])
    def test_any_key_is_recognized(self, store: SessionDBProvider, key: str) -> None:
        first = store.outbox.intend(reply(key))
        assert store.outbox.intend(reply(key)) == first
        assert first["key"] == key

    def test_a_draft_is_sent_when_it_is_complete(self, store: SessionDBProvider) -> None:
        draft = store.outbox.intend(reply("k", draft=True))
        assert store.outbox.sending("n1") == []
        assert store.outbox.preview(draft["id"], {"message_id": 7})
        accept(store, "a")
        taken = claim(store)
        store.turns.finish(taken.lease, turn_of(taken), intents=[reply("k")])
        (row,) = store.outbox.sending("n1")
        assert (row["id"], row["receipt"], row["turn_id"]) == (draft["id"], {"message_id": 7}, taken.turn_id)

    @pytest.mark.parametrize(
        "changes", [{"kind": ""}, {"delay_seconds": -1}, {"ttl_seconds": float("nan")}, {"session_key": ""}]
    )
    def test_wrong_intents_are_refused(self, store: SessionDBProvider, changes: dict[str, Any]) -> None:
        with pytest.raises(InvalidValue):
            store.outbox.intend(reply("k", **changes))
        assert store.outbox.find("k") is None


class TestSending:
    def test_a_lane_sends_one_message_at_a_time_in_order(self, store: SessionDBProvider) -> None:
        for name, key in (("a", KEY), ("b", KEY), ("c", OTHER), ("d", None), ("e", None)):
            store.outbox.intend(reply(name, session_key=key))
        first = store.outbox.sending("n1")
        assert keys(first) == ["a", "c", "d", "e"]
        assert store.outbox.sending("n2") == []
        store.outbox.sent(first[0]["id"], 1, {"id": "x"})
        assert keys(store.outbox.sending("n2")) == ["b"]
        assert keys(store.outbox.pending()) == ["b", "c", "d", "e"]

    def test_platform_and_account_are_chosen(self, store: SessionDBProvider) -> None:
        for account in ("one", "two"):
            store.outbox.intend(reply(account, account=account))
        assert store.outbox.sending("n1", platform="slack") == []
        assert keys(store.outbox.sending("n1", platform="telegram", account="two")) == ["two"]
        assert keys(store.outbox.sending("n1", limit=1)) == ["one"]

    def test_a_sent_message_keeps_its_receipt_and_not_its_text(self, store: SessionDBProvider) -> None:
        store.outbox.intend(reply("k"))
        (row,) = store.outbox.sending("n1")
        for _ in range(2):
            store.outbox.sent(row["id"], row["attempts"], {"message_id": 5})
        found = store.outbox.find("k")
        assert found is not None
        assert (found["state"], found["receipt"], found["payload"]) == ("sent", {"message_id": 5}, None)
        assert store.outbox.sending("n1") == []

    def test_a_sender_that_dies_leaves_a_warning(self, store: SessionDBProvider) -> None:
        store.outbox.intend(reply("k"))
        (first,) = store.outbox.sending("n1")
        end_leases(store)
        (second,) = store.outbox.sending("n2")
        assert (first["was_sending"], second["was_sending"], second["attempts"]) == (False, True, 2)
        with pytest.raises(StaleLease):
            store.outbox.sent(first["id"], first["attempts"])
        for write in (store.outbox.unknown, store.outbox.failed):
            with pytest.raises(StaleLease):
                write(first["id"], first["attempts"], "late")
        store.outbox.sent(second["id"], second["attempts"])

    def test_what_a_dead_node_was_sending_is_taken_at_once_with_the_warning(self, store: SessionDBProvider) -> None:
        for key in ("a", "b"):
            store.outbox.intend(reply(key))
        store.outbox.sending("dead", limit=1)
        store.outbox.sending("alive", limit=1)
        assert [store.outbox.end_leases(each) for each in ("unknown", "dead", "dead")] == [0, 1, 0]
        (taken,) = store.outbox.sending("n1")
        assert (taken["key"], taken["was_sending"]) == ("a", True)

    def test_a_failure_is_tried_again_later(self, store: SessionDBProvider) -> None:
        store.outbox.intend(reply("a", session_key=KEY))
        store.outbox.intend(reply("b", session_key=KEY))
        (row,) = store.outbox.sending("n1")
        assert store.outbox.failed(row["id"], 1, "offline", delay_seconds=600)
        assert store.outbox.sending("n1") == []
        end_leases(store)
        (row,) = store.outbox.sending("n1")
        assert (row["key"], row["attempts"], row["was_sending"]) == ("a", 2, False)
        assert not store.outbox.failed(row["id"], 2, "offline", max_attempts=2)
        assert [(each["key"], each["state"], each["reason"]) for each in store.outbox.dead()] == [
            ("a", "dead", "offline")
        ]
        assert keys(store.outbox.sending("n1")) == ["b"]

    def test_an_expired_message_is_listed_and_not_sent(self, store: SessionDBProvider) -> None:
        store.outbox.intend(reply("late", ttl_seconds=0))
        store.outbox.intend(reply("tried", ttl_seconds=3600))
        assert keys(store.outbox.sending("n1")) == ["tried"]
        end_leases(store)
        store._engine.write(lambda tx: tx.run("UPDATE outbox SET expires_at = 1 WHERE expires_at IS NOT NULL"))
        assert store.outbox.sending("n1") == []
        assert [(row["key"], row["state"]) for row in store.outbox.dead()] == [
            ("late", "expired"),
            ("tried", "unknown"),
        ]

    def test_a_delayed_message_waits(self, store: SessionDBProvider) -> None:
        store.outbox.intend(reply("k", delay_seconds=600))
        assert store.outbox.sending("n1") == []

    def test_a_clock_that_was_set_back_delays_no_message(self, store: SessionDBProvider) -> None:
        for name in ("tried", "sending", "new"):
            store.outbox.intend(reply(name))
        tried, sending, _ = store.outbox.sending("n1")
        store.outbox.failed(tried["id"], tried["attempts"], "no network", delay_seconds=1.0)
        new = store.outbox.find("new")
        assert new is not None
        store.outbox.failed(new["id"], 1, "no network")
        store.outbox.intend(reply("delayed", delay_seconds=7_200.0))
        store._engine.write(
            lambda tx: tx.run("UPDATE outbox SET due_at = due_at + 90000, created_at = created_at + 90000")
        )
        assert {row["key"]: row["was_sending"] for row in store.outbox.sending("n2")} == {
            "tried": False,
            "sending": True,
            "new": False,
        }
        delayed = store.outbox.find("delayed")
        assert delayed is not None
        assert 7_190 < delayed["due_at"] - delayed["created_at"] < 7_210
        assert store.outbox.sending("n2") == []
        assert sending["state"] == "sending"

    def test_a_result_for_no_message_is_refused(self, store: SessionDBProvider) -> None:
        with pytest.raises(InvalidValue):
            store.outbox.sent(99, 1)


class TestDeadLetters:
    def dead(self, store: SessionDBProvider) -> int:
        """Return the id of a message of which nothing is known."""
        store.outbox.intend(reply("k"))
        (row,) = store.outbox.sending("n1")
        store.outbox.unknown(row["id"], 1, "the connection broke")
        return row["id"]

    def test_an_unknown_message_can_be_sent_once_more(self, store: SessionDBProvider) -> None:
        number = self.dead(store)
        assert [row["reason"] for row in store.outbox.dead()] == ["the connection broke"]
        assert [store.outbox.retry(number) for _ in range(2)] == [True, False]
        assert [row["attempts"] for row in store.outbox.sending("n1")] == [2]

    def test_a_deleted_message_keeps_its_key(self, store: SessionDBProvider) -> None:
        number = self.dead(store)
        assert [store.outbox.delete(number) for _ in range(2)] == [True, False]
        assert (store.outbox.dead(), store.outbox.retry(number)) == ([], False)
        assert store.outbox.intend(reply("k"))["state"] == "unknown"

    def test_pending_messages_can_be_given_up(self, store: SessionDBProvider) -> None:
        number = store.outbox.intend(reply("k"))["id"]
        assert [store.outbox.expire(number) for _ in range(2)] == [True, False]
        assert [row["state"] for row in store.outbox.dead()] == ["expired"]
        assert store.outbox.dead(after=number) == []

    def test_old_ones_expire_and_ended_ones_are_removed(self, store: SessionDBProvider) -> None:
        self.dead(store)
        assert (store.outbox.expire_dead(3600), store.outbox.sweep(0)) == (0, 0)
        assert (store.outbox.expire_dead(0), store.outbox.sweep(3600), store.outbox.sweep(0)) == (1, 0, 1)
        assert store.outbox.find("k") is None


class TestConnectors:
    def test_one_node_polls(self, store: SessionDBProvider) -> None:
        lease = store.connectors.acquire("telegram:bot", "n1")
        assert lease is not None
        assert store.connectors.acquire("telegram:bot", "n2") is None
        assert store.connectors.acquire("telegram:other", "n2") is not None
        holder = store.connectors.holder("telegram:bot")
        assert holder == lease
        assert store.connectors.release(lease)
        assert not store.connectors.release(lease)
        assert (store.connectors.holder("telegram:bot"), store.connectors.holder("nowhere")) == (None, None)

    def test_leases_of_a_dead_node_end_and_those_of_others_stay(self, store: SessionDBProvider) -> None:
        lease = store.connectors.acquire("telegram:bot", "n1")
        assert lease is not None
        assert store.connectors.acquire("matrix:bot", "n1") is not None
        assert store.connectors.acquire("telegram:other", "n2") is not None
        assert store.connectors.end_leases("n1") == 2
        assert store.connectors.end_leases("n1") == 0
        taken = store.connectors.acquire("telegram:bot", "n3")
        assert taken is not None
        assert taken.token > lease.token
        with pytest.raises(StaleLease):
            store.connectors.renew(lease)
        assert store.connectors.acquire("telegram:other", "n3") is None

    def test_an_ended_lease_passes_on_and_is_stale(self, store: SessionDBProvider) -> None:
        first = store.connectors.acquire("telegram:bot", "n1", 0)
        second = store.connectors.acquire("telegram:bot", "n1")
        assert first is not None
        assert second is not None
        assert second.token > first.token
        with pytest.raises(StaleLease):
            store.connectors.renew(first)
        assert not store.connectors.release(first)
        assert store.connectors.renew(second, 120).until > second.until
