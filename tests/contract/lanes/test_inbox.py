"""The inbox: a message is stored once, in order, and its end is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.lanes.identity import MAX_PAYLOAD_BYTES
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import KEY, OTHER, accept, broken_rules, claim, end_leases, names, state_of, turn_of


def same(store: SessionDBProvider, key: str = KEY, **changes: Any) -> str:
    """Accept a message with some of its values changed, and return whether it is known."""
    values = {"platform": "telegram", "account": "bot", "chat_id": "c", "message_id": "m", "delivery_id": "d"}
    return store.inbox.accept(key, {"text": "x"}, **{**values, **changes}).state


def nested(levels: int) -> Any:
    """A list in a list in a list ..."""
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


class TestAccept:
    def test_an_accepted_message_is_stored_as_it_is(self, store: SessionDBProvider) -> None:
        payload = {"text": "h\0i \ud800 東京", "list": [1, {"a": None}]}
        found = store.inbox.accept(
            KEY, payload, platform="slack", chat_id="C", message_id="9", account="bot", kind="queue"
        )
        row = store.inbox.get(found.message["id"])
        assert (found.state, found.waiting, found.message) == ("accepted", 1, row)
        assert row is not None
        assert (row["payload"], row["kind"], row["state"], row["attempts"]) == (payload, "queue", "accepted", 0)
        assert (row["session_key"], row["platform"], row["account"]) == (KEY, "slack", "bot")
        assert (row["chat_id"], row["message_id"], row["delivery_id"]) == ("C", "9", None)

    @pytest.mark.parametrize(
        "changes", [{}, {"delivery_id": "d2"}, {"delivery_id": None}, {"message_id": None}, {"message_id": "m2"}]
    )
    def test_a_repeated_message_is_known(self, store: SessionDBProvider, changes: dict[str, Any]) -> None:
        assert [same(store), same(store, **changes), same(store, OTHER, **changes)] == ["accepted", "known", "known"]
        assert names(store.inbox.waiting(KEY)) == ["m"]
        assert store.inbox.depth(OTHER) == 0

    @pytest.mark.parametrize(
        "changes", [{"account": "b"}, {"platform": "slack"}, {"chat_id": "c2", "delivery_id": "e"}]
    )
    def test_another_account_platform_or_chat_is_another_message(
        self, store: SessionDBProvider, changes: dict[str, Any]
    ) -> None:
        assert [same(store), same(store, **changes)] == ["accepted", "accepted"]

    def test_parts_of_a_name_are_not_confused(self, store: SessionDBProvider) -> None:
        pairs = [
            {"account": "a:b", "chat_id": "c"},
            {"account": "a", "chat_id": "b:c"},
            {"account": "a'", "chat_id": ", 'c"},
        ]
        assert [same(store, delivery_id=None, **each) for each in pairs] == ["accepted"] * 3

    def test_messages_without_ids_are_never_known(self, store: SessionDBProvider) -> None:
        assert [same(store, message_id=None, delivery_id=None) for _ in range(3)] == ["accepted"] * 3
        assert store.inbox.depth(KEY) == 3

    @pytest.mark.parametrize("name", ["x" * 10_000, "a\0b", "\ud800", "東京\n"])
    def test_odd_ids_are_recognized(self, store: SessionDBProvider, name: str) -> None:
        assert [same(store, message_id=name, delivery_id=name, chat_id=name) for _ in range(2)] == ["accepted", "known"]
        (row,) = store.inbox.find(name, platform="telegram", chat_id=name)
        assert (row["message_id"], row["delivery_id"], row["chat_id"]) == (name, name, name)

    def test_a_message_stays_known_in_every_state(self, store: SessionDBProvider) -> None:
        for name in ("done", "failed", "discarded", "parked"):
            accept(store, name)
        for end in ("finish", "fail", "discard", "park"):
            taken = claim(store)
            if end == "finish":
                store.turns.finish(taken.lease, turn_of(taken))
            else:
                more = {"retry": False} if end == "fail" else {}
                getattr(store.turns, end)(taken.lease, turn_of(taken), "why", **more)
        for name in ("done", "failed", "discarded", "parked"):
            found = accept(store, name)
            assert (found.state, found.message["state"], found.waiting) == ("known", name, 0)

    @pytest.mark.parametrize(
        ("key", "payload", "changes"),
        [
            ("", {}, {}),
            (None, {}, {}),
            (KEY, [], {}),
            (KEY, {"x": "y" * MAX_PAYLOAD_BYTES}, {}),
            (KEY, {"x": object()}, {}),
            (KEY, {"x": nested(150)}, {}),
            (KEY, {"x": nested(100_000)}, {}),
            (KEY, {}, {"kind": "loud"}),
            (KEY, {}, {"platform": ""}),
            (KEY, {}, {"message_id": 7}),
            (KEY, {}, {"account": None}),
        ],
    )
    def test_a_wrong_message_is_refused_and_not_remembered(
        self, store: SessionDBProvider, key: Any, payload: Any, changes: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidValue):
            store.inbox.accept(key, payload, **{"platform": "telegram", "delivery_id": "d", **changes})
        assert store.inbox.totals().waiting == 0
        assert store.inbox.accept(KEY, {}, platform="telegram", delivery_id="d").state == "accepted"

    def test_the_first_six_messages_of_a_chat_have_one_queue(self, store: SessionDBProvider) -> None:
        assert [accept(store, f"photo {number}").waiting for number in range(6)] == [1, 2, 3, 4, 5, 6]
        assert names(claim(store).messages) == [f"photo {number}" for number in range(1, 6)]


class TestQueue:
    def test_waiting_messages_are_listed_by_kind_in_order(self, store: SessionDBProvider) -> None:
        for name, kind in (("a", "normal"), ("b", "command"), ("c", "queue"), ("d", "command")):
            accept(store, name, kind=kind)  # type: ignore[arg-type]
        assert names(store.inbox.waiting(KEY)) == ["a", "b", "c", "d"]
        assert names(store.inbox.waiting(KEY, kinds=["command"])) == ["b", "d"]
        assert names(store.inbox.waiting(KEY, limit=1)) == ["a"]
        assert store.inbox.waiting(OTHER) == []

    def test_totals_count_lanes_and_messages(self, store: SessionDBProvider) -> None:
        for name in "abc":
            accept(store, name)
        accept(store, "d", OTHER)
        claim(store)
        totals = store.inbox.totals()
        assert (totals.lanes, totals.waiting, totals.leased) == (1, 3, 1)

    def test_waiting_messages_can_be_discarded(self, store: SessionDBProvider) -> None:
        accept(store, "running")
        taken = claim(store)
        for name, kind in (("a", "normal"), ("b", "command"), ("c", "queue")):
            accept(store, name, kind=kind)  # type: ignore[arg-type]
        assert store.inbox.discard_waiting(KEY, "new session", kinds=["normal", "queue"]) == 2
        assert store.inbox.discard_waiting("unknown", "new session") == 0
        assert [state_of(store, name) for name in ("running", "a", "b", "c")] == [
            "running",
            "discarded",
            "accepted",
            "discarded",
        ]
        assert store.turns.finish(taken.lease, turn_of(taken)).waiting == 1
        assert broken_rules(store) == []


class TestDeadLetters:
    def quarantined(self, store: SessionDBProvider) -> int:
        """Let a message die, and return its id."""
        number = accept(store, "poison").message["id"]
        for _ in range(3):
            claim(store, seconds=0)
        end_leases(store)
        taken = store.turns.claim_next("n9")
        assert taken is not None
        assert [row["id"] for row in taken.dead] == [number]
        store.turns.release(taken.lease)
        return number

    def test_a_dead_message_is_listed_with_its_reason(self, store: SessionDBProvider) -> None:
        number = self.quarantined(store)
        (row,) = store.inbox.dead()
        assert (row["id"], row["state"], row["attempts"], row["payload"]) == (number, "dead", 3, {"text": "poison"})
        assert "n1" in (row["reason"] or "")
        assert store.inbox.dead(after=number) == []

    def test_a_dead_message_can_be_tried_again(self, store: SessionDBProvider) -> None:
        number = self.quarantined(store)
        accept(store, "later")
        assert [store.inbox.retry(number) for _ in range(2)] == [True, False]
        taken = claim(store)
        assert (names(taken.started), taken.started[0]["attempts"]) == (["poison"], 1)
        assert store.inbox.dead() == []
        assert broken_rules(store) == []

    def test_a_deleted_message_is_gone_but_known(self, store: SessionDBProvider) -> None:
        number = self.quarantined(store)
        assert [store.inbox.delete(number) for _ in range(2)] == [True, False]
        assert (store.inbox.dead(), store.inbox.retry(number)) == ([], False)
        found = accept(store, "poison")
        assert (found.state, found.message["payload"]) == ("known", None)

    def test_old_dead_messages_expire(self, store: SessionDBProvider) -> None:
        self.quarantined(store)
        assert store.inbox.expire(3600) == 0
        assert store.inbox.expire(0) == 1
        assert store.inbox.dead() == []

    def test_without_any_nothing_is_written(self, store: SessionDBProvider, monkeypatch: pytest.MonkeyPatch) -> None:
        accept(store, "m1")
        monkeypatch.setattr(store._engine, "write", lambda *_: pytest.fail("a write"))
        assert (store.inbox.expire(0.0), store.outbox.expire_dead(0.0)) == (0, 0)


class TestSweep:
    def test_ended_messages_are_removed_in_slices(self, store: SessionDBProvider) -> None:
        for number in range(5):
            accept(store, f"m{number}")
        for _ in range(4):
            taken = claim(store)
            store.turns.finish(taken.lease, turn_of(taken))
        assert store.inbox.sweep(3600) == 0
        assert [store.inbox.sweep(0, limit=3) for _ in range(3)] == [3, 1, 0]
        assert [accept(store, name).state for name in ("m0", "m4")] == ["accepted", "known"]
        assert broken_rules(store) == []

    def test_dead_messages_stay(self, store: SessionDBProvider) -> None:
        accept(store, "m")
        taken = claim(store)
        store.turns.park(taken.lease, turn_of(taken), "why")
        assert store.inbox.sweep(0) == 0
        assert names(store.inbox.dead()) == ["m"]
