"""Leases and turns: one node at a time works on a lane, and no message is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermes.errors import Conflict, InvalidValue, StaleLease
from hermes.state.lanes.queue.leases import turn_of_normal, turn_of_one
from hermes.state.lanes.types import Claim, Lease
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.lanes import (
    KEY,
    OTHER,
    accept,
    broken_rules,
    claim,
    end_leases,
    names,
    reply,
    start_lane,
    state_of,
    turn_of,
)
from tests.support.stores import Opener


class TestClaims:
    def test_the_oldest_waiting_lane_comes_first(self, store: SessionDBProvider) -> None:
        for name, key in (("a", KEY), ("b", OTHER), ("c", KEY)):
            accept(store, name, key)
        claims = [store.turns.claim_next(node) for node in ("n1", "n2", "n3")]
        assert [each and each.lease.session_key for each in claims] == [KEY, OTHER, None]
        assert [names(each.messages) for each in claims if each] == [["a", "c"], ["b"]]

    def test_without_messages_there_is_nothing_to_claim(self, store: SessionDBProvider) -> None:
        start_lane(store)
        assert store.turns.claim_next("n1") is None

    def test_a_turn_can_start_with_the_claim(self, store: SessionDBProvider) -> None:
        for name, kind in (("a", "normal"), ("b", "normal"), ("c", "queue"), ("d", "normal")):
            accept(store, name, kind=kind)  # type: ignore[arg-type]
        taken = store.turns.claim_next("n1", choose=turn_of_normal)
        assert taken is not None
        assert (names(taken.started), names(taken.messages), taken.waiting) == (["a", "b"], ["c", "d"], 2)
        assert [row["attempts"] for row in taken.started] == [1, 1]
        stored = [store.inbox.get(row["id"]) for row in taken.started]
        assert stored == list(taken.started)
        assert broken_rules(store) == []

    def test_a_claim_returns_no_more_messages_than_requested(self, store: SessionDBProvider) -> None:
        for number in range(5):
            accept(store, f"m{number}")
        taken = store.turns.claim_next("n1", choose=turn_of_normal, limit=2)
        assert taken is not None
        assert (names(taken.started), taken.messages, taken.waiting) == (["m0", "m1"], (), 3)
        assert broken_rules(store) == []

    def test_a_wrong_choice_claims_nothing(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        other = accept(store, "b", OTHER).message["id"]
        for choice in ([other], [0], "no", [None]):
            with pytest.raises(InvalidValue):
                store.turns.claim_next("n1", choose=lambda _, choice=choice: choice)  # type: ignore[misc]
        assert store.turns.running() == []
        assert store.inbox.totals().leased == 0

    @pytest.mark.parametrize("seconds", [-1, 3601, float("nan"), None, "60"])
    def test_the_length_of_a_lease_has_limits(self, store: SessionDBProvider, seconds: Any) -> None:
        accept(store, "a")
        with pytest.raises(InvalidValue):
            store.turns.claim_next("n1", seconds)

    def test_tokens_grow(self, store: SessionDBProvider) -> None:
        tokens: list[int] = []
        for _ in range(3):
            accept(store, f"m{len(tokens)}")
            taken = claim(store)
            tokens.append(taken.lease.token)
            store.turns.finish(taken.lease, turn_of(taken))
        assert tokens == sorted(set(tokens))

    def test_a_claim_looks_past_lanes_whose_work_has_vanished(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        accept(store, "b", OTHER)
        store._engine.write(lambda tx: tx.run("DELETE FROM inbox WHERE lane_id = :lane", lane=KEY))
        assert names(claim(store).started) == ["b"]


class TestLeases:
    def test_a_leased_lane_belongs_to_one_node(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        claim(store)
        accept(store, "b")
        assert store.turns.claim_next("n2") is None
        assert store.turns.acquire(KEY, "n2") is None
        assert store.turns.acquire(KEY, "n1") is None

    def test_an_ended_lease_passes_to_another_node(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        first = claim(store, "n1", 0)
        second = claim(store, "n2")
        assert second.lease.token > first.lease.token
        assert second.lost is not None
        assert second.lost["turn_id"] == first.turn_id
        assert (names(second.started), second.started[0]["attempts"]) == (["a"], 2)
        lost = store.turns.get(turn_of(first))
        assert lost is not None
        assert lost["state"] == "lost"
        assert broken_rules(store) == []

    def test_a_lease_that_ended_counts_until_another_node_has_the_lane(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store, seconds=0)
        store.turns.progress(taken.lease, turn_of(taken))
        store.turns.finish(taken.lease, turn_of(taken))
        assert state_of(store, "a") == "done"

    def test_a_renewed_lease_does_not_pass_on(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store, "n1", 0)
        renewed = store.turns.renew(taken.lease, 60)
        assert renewed.until > taken.lease.until
        assert store.turns.claim_next("n2") is None
        assert renewed.token == taken.lease.token

    def test_a_message_accepted_before_the_release_is_not_left_behind(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        finished = store.turns.finish(taken.lease, turn_of(taken), keep_lease=True)
        assert (finished.waiting, finished.lease) == (0, taken.lease)
        accept(store, "b")
        assert store.turns.release(taken.lease) == 1
        assert names(claim(store, "n2").started) == ["b"]

    def test_a_drain_gives_the_attempts_back(self, store: SessionDBProvider) -> None:
        for number in range(8):
            accept(store, f"m{number}")
        taken = store.turns.claim_next("n1", choose=turn_of_normal)
        assert taken is not None
        assert store.turns.release(taken.lease) == 8
        rows = store.inbox.waiting(KEY)
        assert names(rows) == [f"m{number}" for number in range(8)]
        assert {row["attempts"] for row in rows} == {0}
        turn = store.turns.get(turn_of(taken))
        assert turn is not None
        assert turn["state"] == "interrupted"
        assert broken_rules(store) == []

    def test_a_lane_without_messages_can_be_acquired(self, store: SessionDBProvider) -> None:
        taken = store.turns.acquire(KEY, "n1")
        assert taken is not None
        assert (taken.messages, taken.waiting) == ((), 0)
        number = accept(store, "a").message["id"]
        assert store.turns.claim_next("n2") is None
        store.turns.start(taken.lease, [number])
        assert store.inbox.waiting(KEY) == []

    def test_a_lease_from_before_the_clock_was_set_back_does_not_block_the_lane(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        claim(store, "n1")
        store._engine.write(lambda tx: tx.run("UPDATE lane_queues SET lease_until = lease_until + 86400"))
        assert names(claim(store, "n2").started) == ["a"]

    def test_leases_do_not_depend_on_the_clock_of_a_node(self, open_store: Opener, clock: FakeClock) -> None:
        accept(open_store(), "a")
        claim(open_store(), "n1")
        clock.advance(90_000)
        assert open_store().turns.claim_next("n2") is None


def _writes(taken: Claim) -> dict[str, Callable[[SessionDBProvider], object]]:
    """Every write of a turn."""
    lease, turn = taken.lease, turn_of(taken)
    return {
        "renew": lambda db: db.turns.renew(lease),
        "release": lambda db: db.turns.release(lease),
        "start": lambda db: db.turns.start(lease, [2]),
        "join": lambda db: db.turns.join(lease, turn, [2]),
        "progress": lambda db: db.turns.progress(lease, turn, {"step": 1}),
        "finish": lambda db: db.turns.finish(lease, turn, intents=[reply()]),
        "fail": lambda db: db.turns.fail(lease, turn, "why", intents=[reply()]),
        "discard": lambda db: db.turns.discard(lease, turn, "why", intents=[reply()]),
        "park": lambda db: db.turns.park(lease, turn, "why", intents=[reply()]),
        "settle": lambda db: db.turns.settle(lease, [2], intents=[reply()]),
        "interrupt": lambda db: db.turns.interrupt(lease, turn, intents=[reply()]),
        "hold": lambda db: db.turns.hold(lease, kinds=None, reason="why"),
        "unhold": lambda db: db.turns.unhold(lease),
    }


WRITES = (
    *("renew", "release", "start", "join", "progress", "finish", "fail", "discard", "park", "settle"),
    *("interrupt", "hold", "unhold"),
)


class TestFence:
    @pytest.mark.parametrize("name", WRITES)
    def test_a_node_that_lost_its_lease_changes_nothing(self, store: SessionDBProvider, name: str) -> None:
        start_lane(store)
        accept(store, "a")
        taken = claim(store, "n1", 0)
        accept(store, "b")
        # The same name, as of a process that is started again.
        other = claim(store, "n1")
        before = self.contents(store)
        with pytest.raises(StaleLease):
            _writes(taken)[name](store)
        assert self.contents(store) == before
        store.turns.finish(other.lease, turn_of(other))

    @pytest.mark.parametrize("name", WRITES)
    def test_a_lease_of_a_lane_that_does_not_exist_is_stale(self, store: SessionDBProvider, name: str) -> None:
        taken = Claim(Lease("nowhere", "n1", 1, 0.0), (), 0, turn_id="t")
        with pytest.raises(StaleLease):
            _writes(taken)[name](store)

    def contents(self, store: SessionDBProvider) -> list[Any]:
        """All rows about lanes."""
        tables = ("lanes", "lane_queues", "inbox", "turns", "outbox")
        return [store._engine.read(lambda tx, t=t: tx.rows(f"SELECT * FROM {t} ORDER BY 1")) for t in tables]  # type: ignore[misc]


class TestEnds:
    def test_finishing_is_one_transaction(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_lane(store)
        accept(store, "a")
        taken = claim(store)
        clock.advance(7)
        fields = {"last_prompt_tokens": 42, "resume_pending": False}
        result = store.turns.finish(taken.lease, turn_of(taken), intents=[reply("k1"), reply("k2")], lane=fields)  # type: ignore[arg-type]
        assert (result.waiting, result.lease) == (0, None)
        lane, turn, (row,) = store.lanes.get(KEY), store.turns.get(turn_of(taken)), store.inbox.find("a")
        assert lane is not None
        assert turn is not None
        assert (lane["updated_at"], lane["last_prompt_tokens"]) == (NOW + 7, 42)
        assert (turn["state"], turn["session_id"], row["state"], row["payload"]) == ("finished", "s1", "done", None)
        assert [each["key"] for each in store.outbox.pending()] == ["k1", "k2"]
        assert {each["turn_id"] for each in store.outbox.pending()} == {turn_of(taken)}
        assert store.turns.claim_next("n1") is None

    def test_a_failing_end_changes_nothing(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        with pytest.raises(InvalidValue):
            store.turns.finish(taken.lease, turn_of(taken), intents=[reply(kind="")])
        assert (state_of(store, "a"), store.outbox.pending()) == ("running", [])

    @pytest.mark.parametrize("keep", [True, False])
    def test_finishing_twice_is_the_same_as_once(self, store: SessionDBProvider, keep: bool) -> None:
        accept(store, "a")
        taken = claim(store)
        results = [
            store.turns.finish(taken.lease, turn_of(taken), intents=[reply()], keep_lease=keep) for _ in range(2)
        ]
        assert results[0] == results[1]
        assert len(store.outbox.pending()) == 1

    def test_another_turn_cannot_be_ended(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        with pytest.raises(Conflict):
            store.turns.finish(taken.lease, "another")
        with pytest.raises(Conflict):
            store.turns.progress(taken.lease, "another")

    def test_a_failed_turn_is_retried_until_its_messages_are_dead(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        accept(store, "b")
        for attempt in (1, 2):
            taken = claim(store)
            assert taken.started[0]["attempts"] == attempt
            result = store.turns.fail(taken.lease, turn_of(taken), "overload")
            assert (result.waiting, result.dead) == (2, ())
        taken = claim(store)
        result = store.turns.fail(taken.lease, turn_of(taken), "overload", intents=[reply()])
        assert (result.waiting, result.dead) == (1, (taken.started[0]["id"],))
        (row,) = store.inbox.dead()
        assert (row["message_id"], row["reason"], row["state"]) == ("a", "overload", "dead")
        assert names(claim(store).started) == ["b"]
        assert broken_rules(store) == []

    def test_a_retry_can_be_delayed(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        store.turns.fail(taken.lease, turn_of(taken), "overload", delay_seconds=600)
        accept(store, "b")
        assert store.turns.claim_next("n1") is None
        end_leases(store)
        assert names(claim(store).started) == ["a"]
        assert broken_rules(store) == []

    def test_a_failure_can_be_final(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        assert store.turns.fail(taken.lease, turn_of(taken), "refused", retry=False).waiting == 0
        assert (state_of(store, "a"), store.inbox.dead()) == ("failed", [])

    def test_parked_messages_do_not_hold_up_the_lane(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        accept(store, "b")
        taken = claim(store)
        assert store.turns.park(taken.lease, turn_of(taken), "waits for an approval").waiting == 1
        (row,) = store.inbox.dead()
        assert (row["state"], row["reason"], row["payload"]) == ("parked", "waits for an approval", {"text": "a"})
        assert names(claim(store).started) == ["b"]

    def test_discarded_messages_have_a_reason(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        store.turns.discard(taken.lease, turn_of(taken), "stopped by the user")
        (row,) = store.inbox.find("a")
        assert (row["state"], row["reason"]) == ("discarded", "stopped by the user")

    def test_messages_can_join_the_running_turn(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        steer = accept(store, "b", kind="steer").message["id"]
        store.turns.join(taken.lease, turn_of(taken), [steer])
        with pytest.raises(Conflict):
            store.turns.join(taken.lease, turn_of(taken), [steer])
        assert broken_rules(store) == []
        store.turns.finish(taken.lease, turn_of(taken))
        assert [state_of(store, name) for name in "ab"] == ["done", "done"]

    def test_commands_are_settled_beside_the_running_turn(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        command = accept(store, "b", kind="command").message["id"]
        store.turns.settle(taken.lease, [command], intents=[reply("status")])
        assert [state_of(store, name) for name in "ab"] == ["running", "done"]
        assert [row["key"] for row in store.outbox.pending()] == ["status"]
        with pytest.raises(InvalidValue):
            store.turns.settle(taken.lease, [command], state="accepted")
        assert store.turns.finish(taken.lease, turn_of(taken)).waiting == 0

    def test_a_lane_has_one_turn_at_a_time(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        second = accept(store, "b").message["id"]
        with pytest.raises(Conflict):
            store.turns.start(taken.lease, [second])
        store.turns.finish(taken.lease, turn_of(taken), keep_lease=True)
        turn = store.turns.start(taken.lease, [second])
        assert [row["turn_id"] for row in store.turns.history(KEY)] == [turn, turn_of(taken)]
        for wrong in ([], [second], [99], "x"):
            with pytest.raises((Conflict, InvalidValue)):
                store.turns.start(taken.lease, wrong)  # type: ignore[arg-type]


class TestRecovery:
    def test_a_turn_with_progress_survives_ten_restarts(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        for number in range(10):
            taken = claim(store, f"n{number}", 0)
            store.turns.progress(taken.lease, turn_of(taken), {"step": number})
        taken = claim(store)
        assert taken.lost is not None
        assert taken.lost["note"] == {"step": 9}
        assert (taken.started[0]["attempts"], taken.started[0]["starts"]) == (1, 11)
        store.turns.finish(taken.lease, turn_of(taken))
        assert state_of(store, "a") == "done"

    def test_progress_for_ever_ends_too(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        claims = []
        while (taken := store.turns.claim_next("n1", 0, choose=turn_of_one)) is not None and taken.turn_id:
            store.turns.progress(taken.lease, taken.turn_id)
            claims.append(taken)
            assert len(claims) < 50
        assert taken is not None
        assert [row["state"] for row in taken.dead] == ["parked"]

    def test_a_message_that_kills_its_node_is_quarantined(self, store: SessionDBProvider) -> None:
        accept(store, "poison")
        accept(store, "neighbour", OTHER)
        accept(store, "behind")
        for _ in range(3):
            taken = claim(store, "n1", 0)
            while taken.lease.session_key != KEY:
                store.turns.finish(taken.lease, turn_of(taken))
                taken = claim(store, "n1", 0)
        seen = []
        while (found := store.turns.claim_next("n2", choose=turn_of_one)) is not None:
            seen += names(found.started)
            if found.turn_id:
                store.turns.finish(found.lease, found.turn_id)
        assert (state_of(store, "poison"), state_of(store, "behind"), state_of(store, "neighbour")) == (
            "dead",
            "done",
            "done",
        )
        assert seen[-1] == "behind"
        assert broken_rules(store) == []

    def test_running_turns_are_listed(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        accept(store, "b", OTHER)
        turns = [turn_of(claim(store)) for _ in range(2)]
        assert sorted(row["turn_id"] for row in store.turns.running()) == sorted(turns)
        assert [row["turn_id"] for row in store.turns.running(limit=1)] == turns[:1]

    def test_old_turns_are_removed(self, store: SessionDBProvider) -> None:
        for name in "ab":
            accept(store, name)
        taken = claim(store)
        store.turns.finish(taken.lease, turn_of(taken))
        claim(store)
        assert (store.turns.sweep(3600), store.turns.sweep(0), store.turns.sweep(0)) == (0, 1, 0)
        assert len(store.turns.running()) == 1
