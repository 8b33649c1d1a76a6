"""When messages to platforms can be taken, and which lists there are of them."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue, StaleLease
from hermes.state.lanes.types import Intent, OutboxRow
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import KEY, OTHER, accept, broken_rules, claim, end_leases, reply, turn_of


def keys(rows: list[OutboxRow]) -> list[str]:
    """The keys of messages."""
    return [row["key"] for row in rows]


def intend(store: SessionDBProvider, key: str, platform: str = "telegram", **fields: Any) -> int:
    """Store a message to a platform and return its id."""
    return store.outbox.intend(Intent(key, {"text": key}, platform, **fields))["id"]


class TestOrder:
    def test_a_delayed_message_does_not_hold_later_ones_back(self, store: SessionDBProvider) -> None:
        intend(store, "reminder", session_key=KEY, delay_seconds=3_000)
        intend(store, "a", session_key=KEY)
        intend(store, "b", session_key=KEY)
        (row,) = store.outbox.sending("n1")
        assert row["key"] == "a"
        store.outbox.sent(row["id"], 1)
        assert keys(store.outbox.sending("n1")) == ["b"]
        assert broken_rules(store) == []

    def test_a_delayed_message_comes_first_once_it_is_due(self, store: SessionDBProvider) -> None:
        intend(store, "reminder", session_key=KEY, delay_seconds=3_000)
        intend(store, "a", session_key=KEY)
        end_leases(store)
        assert keys(store.outbox.sending("n1")) == ["reminder"]

    def test_a_message_that_was_tried_holds_later_ones_back(self, store: SessionDBProvider) -> None:
        first = intend(store, "a", session_key=KEY)
        intend(store, "b", session_key=KEY)
        store.outbox.sending("n1")
        store.outbox.failed(first, 1, "offline", delay_seconds=600)
        assert store.outbox.sending("n1") == []


class TestNextDue:
    def test_there_is_none(self, store: SessionDBProvider) -> None:
        intend(store, "k", draft=True)
        assert (store.outbox.next_due(), store.outbox.next_due([]), store.outbox.next_due(["slack"])) == (None,) * 3

    def test_one_can_be_taken_now(self, store: SessionDBProvider) -> None:
        intend(store, "k")
        assert (store.outbox.next_due(), store.outbox.next_due(["telegram", "slack"])) == (0.0, 0.0)
        assert (store.outbox.next_due(["slack"]), store.outbox.next_due([])) == (None, None)

    def test_the_earliest_one_counts(self, store: SessionDBProvider) -> None:
        intend(store, "late", "slack", delay_seconds=1_000)
        intend(store, "soon", delay_seconds=500)
        soon, late = store.outbox.next_due(), store.outbox.next_due(["slack"])
        assert soon is not None
        assert late is not None
        assert (400 < soon <= 500, 900 < late <= 1_000) == (True, True)

    def test_a_message_that_is_held_back_does_not_count(self, store: SessionDBProvider) -> None:
        intend(store, "a", session_key=KEY)
        intend(store, "b", session_key=KEY)
        (row,) = store.outbox.sending("n1")
        until = store.outbox.next_due()
        assert until is not None
        assert 50 < until <= 60
        store.outbox.sent(row["id"], 1)
        assert store.outbox.next_due() == 0.0

    @pytest.mark.parametrize("is_tried", [True, False])
    def test_times_from_before_the_clock_was_set_back_count_as_now(
        self, store: SessionDBProvider, is_tried: bool
    ) -> None:
        intend(store, "k")
        if is_tried:
            store.outbox.sending("n1")
        store._engine.write(
            lambda tx: tx.run("UPDATE outbox SET due_at = due_at + 90000, created_at = created_at + 90000")
        )
        assert store.outbox.next_due() == 0.0
        assert keys(store.outbox.sending("n1")) == ["k"]

    def test_a_message_that_waits_for_days_does_not_count_as_now(self, store: SessionDBProvider) -> None:
        intend(store, "k", delay_seconds=200_000)
        until = store.outbox.next_due()
        assert until is not None
        assert until > 100_000

    @pytest.mark.parametrize("wrong", ["telegram", [""], 3])
    def test_platforms_are_a_list(self, store: SessionDBProvider, wrong: Any) -> None:
        with pytest.raises(InvalidValue):
            store.outbox.next_due(wrong)
        with pytest.raises(InvalidValue):
            store.outbox.sending("n1", exclude_platforms=wrong)


class TestExcludedPlatforms:
    def test_their_messages_are_not_taken(self, store: SessionDBProvider) -> None:
        for platform in ("local", "telegram", "slack"):
            intend(store, platform, platform)
        assert keys(store.outbox.sending("n1", exclude_platforms=["local", "telegram"])) == ["slack"]
        assert store.outbox.sending("n1", platform="local", exclude_platforms=["local"]) == []
        assert keys(store.outbox.sending("n1")) == ["local", "telegram"]


class TestAwaiting:
    def test_messages_of_a_platform_are_listed_without_taking_them(self, store: SessionDBProvider) -> None:
        now = intend(store, "now", "local", session_key=KEY)
        later = intend(store, "later", "local", session_key=KEY, delay_seconds=600)
        intend(store, "draft", "local", draft=True)
        intend(store, "expired", "local", ttl_seconds=0)
        intend(store, "other", "telegram")
        (taken,) = store.outbox.sending("n1", platform="local", limit=1)
        rows = store.outbox.awaiting("local")
        assert [(row["id"], row["state"], row["payload"]) for row in rows] == [
            (now, "sending", {"text": "now"}),
            (later, "pending", {"text": "later"}),
        ]
        assert keys(store.outbox.awaiting("local", after=now)) == ["later"]
        assert keys(store.outbox.awaiting("local", limit=1)) == ["now"]
        assert store.outbox.awaiting("slack") == []
        store.outbox.sent(taken["id"], 1)
        assert keys(store.outbox.awaiting("local")) == ["later"]

    def test_the_order_is_that_of_the_ids(self, store: SessionDBProvider) -> None:
        ids = [intend(store, f"k{number}", "local", delay_seconds=100 - number) for number in range(5)]
        assert [row["id"] for row in store.outbox.awaiting("local")] == ids


class TestConfirming:
    @pytest.mark.parametrize("is_sending", [True, False])
    def test_a_client_confirms_a_message(self, store: SessionDBProvider, is_sending: bool) -> None:
        number = intend(store, "k")
        if is_sending:
            store.outbox.sending("n1")
        assert [store.outbox.confirm(number, {"by": "client"}), store.outbox.confirm(number, {"by": "other"})] == [
            True,
            True,
        ]
        row = store.outbox.get(number)
        assert row is not None
        assert (row["state"], row["receipt"], row["payload"], row["due_at"]) == ("sent", {"by": "client"}, None, 0)
        assert (store.outbox.next_due(), store.outbox.pending()) == (None, [])
        assert broken_rules(store) == []

    def test_the_sender_may_report_it_too(self, store: SessionDBProvider) -> None:
        number = intend(store, "k")
        store.outbox.sending("n1")
        store.outbox.confirm(number)
        store.outbox.sent(number, 1)
        with pytest.raises(StaleLease):
            store.outbox.failed(number, 1, "late")

    def test_other_messages_are_not_confirmed(self, store: SessionDBProvider) -> None:
        draft, expired, dead = intend(store, "draft", draft=True), intend(store, "expired"), intend(store, "dead")
        store.outbox.expire(expired)
        store.outbox.sending("n1")
        store.outbox.unknown(dead, 1, "the connection broke")
        assert [store.outbox.confirm(number) for number in (draft, expired, dead, 99)] == [False] * 4
        assert [row["state"] for row in store.outbox.dead()] == ["expired", "unknown"]

    def test_the_next_message_of_the_lane_follows(self, store: SessionDBProvider) -> None:
        first = intend(store, "a", session_key=KEY)
        intend(store, "b", session_key=KEY)
        store.outbox.sending("n1")
        store.outbox.confirm(first)
        assert keys(store.outbox.sending("n1")) == ["b"]


class TestRunningOut:
    def test_messages_whose_time_has_run_out_end(self, store: SessionDBProvider) -> None:
        intend(store, "held by a sender", ttl_seconds=500)
        intend(store, "left by a sender", ttl_seconds=500)
        store.outbox.sending("n1")
        end_leases(store)
        store.outbox.sending("n2", limit=1)
        store._engine.write(lambda tx: tx.run("UPDATE outbox SET expires_at = 1"))
        intend(store, "new", ttl_seconds=0)
        intend(store, "delayed", ttl_seconds=0, delay_seconds=600)
        intend(store, "draft", ttl_seconds=0, draft=True)
        intend(store, "alive", ttl_seconds=500)
        intend(store, "eternal")
        ended = store.outbox.expire_due()
        assert [(row["key"], row["state"]) for row in ended] == [
            ("left by a sender", "unknown"),
            ("new", "expired"),
            ("delayed", "expired"),
        ]
        assert store.outbox.dead() == ended
        assert ended[1]["payload"] == {"text": "new"}
        assert store.outbox.expire_due() == []
        assert keys(store.outbox.pending()) == ["held by a sender", "alive", "eternal"]
        assert broken_rules(store) == []

    def test_the_number_is_limited(self, store: SessionDBProvider) -> None:
        for name in "abc":
            intend(store, name, ttl_seconds=0)
        assert [len(store.outbox.expire_due(limit=2)) for _ in range(3)] == [2, 1, 0]


class TestLists:
    def test_the_messages_of_a_turn(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        intents = [reply("mine"), reply("elsewhere", session_key=OTHER)]
        store.turns.finish(taken.lease, turn_of(taken), intents=intents)
        intend(store, "no turn", session_key=KEY)
        assert keys(store.outbox.of_turn(turn_of(taken))) == ["mine", "elsewhere"]
        assert store.outbox.of_turn("unknown") == []

    def test_the_messages_of_a_lane_newest_first(self, store: SessionDBProvider) -> None:
        for name in "abc":
            intend(store, name, session_key=KEY)
            (row,) = store.outbox.sending("n1")
            store.outbox.sent(row["id"], 1)
        intend(store, "draft", session_key=KEY, draft=True)
        intend(store, "pending", session_key=KEY)
        intend(store, "other", session_key=OTHER)
        assert keys(store.outbox.of_lane(KEY)) == ["pending", "draft", "c", "b", "a"]
        assert keys(store.outbox.of_lane(KEY, limit=3)) == ["pending", "draft", "c"]
        assert (keys(store.outbox.of_lane(OTHER)), store.outbox.of_lane("unknown")) == (["other"], [])

    def test_old_drafts(self, store: SessionDBProvider) -> None:
        for name in "ab":
            intend(store, name, session_key=KEY, draft=True)
        intend(store, "pending")
        intend(store, "c", session_key=OTHER, draft=True)
        assert (keys(store.outbox.drafts(0)), store.outbox.drafts(3_600)) == (["a", "b", "c"], [])
        assert (keys(store.outbox.drafts(0, key=KEY)), keys(store.outbox.drafts(0, key=OTHER))) == (["a", "b"], ["c"])
        assert store.outbox.drafts(3_600, key=KEY) == []
        intend(store, "a", session_key=KEY)
        draft = store.outbox.find("b")
        assert draft is not None
        assert store.outbox.expire(draft["id"])
        assert (store.outbox.drafts(0, key=KEY), [row["state"] for row in store.outbox.dead()]) == ([], ["expired"])
        with pytest.raises(InvalidValue):
            store.outbox.drafts(-1)
        assert broken_rules(store) == []

    def test_a_draft_is_not_removed(self, store: SessionDBProvider) -> None:
        intend(store, "a", draft=True)
        assert (store.outbox.sweep(0), keys(store.outbox.drafts(0))) == (0, ["a"])
