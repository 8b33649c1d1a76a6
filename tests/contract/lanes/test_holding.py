"""Messages that are held and turns that are interrupted: nothing is lost, and the order stays."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import Conflict, InvalidValue, StaleLease
from hermes.state.lanes.queue.leases import turn_of_normal
from hermes.state.lanes.types import Claim
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW
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


def fill(store: SessionDBProvider) -> Claim:
    """Accept messages of two kinds, and start a turn with the first one."""
    for name, kind in (("a", "normal"), ("b", "queue"), ("c", "normal"), ("d", "queue")):
        accept(store, name, kind=kind)  # type: ignore[arg-type]
    return claim(store)


class TestHolding:
    def test_held_messages_do_not_wait(self, store: SessionDBProvider) -> None:
        taken = fill(store)
        assert store.turns.hold(taken.lease, reason="stopped") == 2
        assert store.turns.hold(taken.lease, reason="again") == 0
        held = store.inbox.held(KEY)
        assert [(row["message_id"], row["state"], row["reason"]) for row in held] == [
            ("b", "held", "stopped"),
            ("d", "held", "stopped"),
        ]
        assert held[0]["payload"] == {"text": "b"}
        assert names(store.inbox.held(KEY, limit=1)) == ["b"]
        assert (names(store.inbox.waiting(KEY)), store.inbox.depth(KEY)) == (["c"], 1)
        assert store.inbox.totals().waiting == 1
        assert broken_rules(store) == []

    def test_they_wait_again_in_their_old_order(self, store: SessionDBProvider) -> None:
        taken = fill(store)
        store.turns.hold(taken.lease, reason="stopped")
        accept(store, "e")
        assert [store.turns.unhold(taken.lease) for _ in range(2)] == [2, 0]
        rows = store.inbox.waiting(KEY)
        assert (names(rows), {row["reason"] for row in rows}, store.inbox.held(KEY)) == (list("bcde"), {None}, [])
        assert store.turns.finish(taken.lease, turn_of(taken)).waiting == 4
        assert names(claim(store).started) == ["b"]
        assert broken_rules(store) == []

    def test_the_kinds_are_chosen(self, store: SessionDBProvider) -> None:
        taken = fill(store)
        assert store.turns.hold(taken.lease, kinds=[], reason="none") == 0
        assert store.turns.hold(taken.lease, kinds=["normal", "steer"], reason="some") == 1
        assert store.turns.hold(taken.lease, kinds=None, reason="all") == 2
        assert names(store.inbox.held(KEY)) == ["b", "c", "d"]
        for wrong in ("queue", ["unknown"], 3):
            with pytest.raises(InvalidValue):
                store.turns.hold(taken.lease, kinds=wrong, reason="wrong")  # type: ignore[arg-type]

    def test_a_lane_with_only_held_messages_is_not_claimed(self, store: SessionDBProvider) -> None:
        accept(store, "a", kind="queue")
        taken = store.turns.claim_next("n1")
        assert taken is not None
        watch = store.turns.watch("n2")
        store.turns.hold(taken.lease, reason="stopped")
        assert store.turns.release(taken.lease) == 0
        assert (store.turns.claim_next("n2"), store.turns.peek().ready_id, watch.wait(0.0)) == (None, 0, False)
        watch.close()
        assert (store.inbox.totals().lanes, store.inbox.totals().waiting) == (0, 0)
        assert broken_rules(store) == []

    def test_a_node_that_dies_leaves_them_held(self, store: SessionDBProvider) -> None:
        accept(store, "a", kind="queue")
        taken = store.turns.claim_next("n1")
        assert taken is not None
        store.turns.hold(taken.lease, reason="stopped")
        end_leases(store)
        for _ in range(2):
            assert store.turns.claim_next("n2") is None
        assert store.turns.peek().first_lease_until == 0
        accept(store, "b")
        again = store.turns.claim_next("n2")
        assert again is not None
        assert (names(again.messages), again.waiting, again.lost) == (["b"], 1, None)
        assert store.turns.unhold(again.lease) == 1
        assert names(store.inbox.waiting(KEY)) == ["a", "b"]
        assert broken_rules(store) == []

    @pytest.mark.parametrize("limit", [1, 32])
    def test_a_claim_never_contains_them(self, store: SessionDBProvider, limit: int) -> None:
        taken = fill(store)
        store.turns.hold(taken.lease, reason="stopped")
        store.turns.release(taken.lease)
        claimed = store.turns.claim_next("n2", choose=turn_of_normal, limit=limit)
        assert claimed is not None
        assert names(claimed.started) == (["a"] if limit == 1 else ["a", "c"])
        assert (claimed.messages, claimed.waiting) == ((), 1 if limit == 1 else 0)
        store.turns.finish(claimed.lease, turn_of(claimed))
        acquired = store.turns.acquire(KEY, "n3", limit=limit)
        assert acquired is not None
        assert names(acquired.messages) == (["c"] if limit == 1 else [])
        assert broken_rules(store) == []

    def test_they_cannot_be_started_or_settled(self, store: SessionDBProvider) -> None:
        accept(store, "a", kind="queue")
        taken = store.turns.claim_next("n1")
        assert taken is not None
        store.turns.hold(taken.lease, reason="stopped")
        for write in (store.turns.start, store.turns.settle):
            with pytest.raises(Conflict):
                write(taken.lease, [taken.messages[0]["id"]])
        assert state_of(store, "a") == "held"

    def test_a_repeated_delivery_is_known(self, store: SessionDBProvider) -> None:
        taken = fill(store)
        store.turns.hold(taken.lease, reason="stopped")
        again = accept(store, "b", kind="queue")
        assert (again.state, again.message["state"], again.waiting) == ("known", "held", 1)

    def test_discarding_what_waits_includes_them(self, store: SessionDBProvider) -> None:
        taken = fill(store)
        store.turns.hold(taken.lease, reason="stopped")
        assert store.inbox.discard_waiting(KEY, "new session", kinds=["normal"]) == 1
        assert store.inbox.discard_waiting(KEY, "new session") == 2
        assert [state_of(store, name) for name in "abcd"] == ["running", "discarded", "discarded", "discarded"]
        (row,) = store.inbox.find("b")
        assert (row["payload"], row["reason"]) == (None, "new session")
        assert broken_rules(store) == []

    def test_they_are_neither_swept_nor_expired(self, store: SessionDBProvider) -> None:
        taken = fill(store)
        store.turns.hold(taken.lease, reason="stopped")
        store.turns.finish(taken.lease, turn_of(taken))
        assert (store.inbox.sweep(0), store.inbox.expire(0)) == (1, 0)
        assert names(store.inbox.held(KEY)) == ["b", "d"]

    def test_a_lane_with_them_is_not_pruned(self, store: SessionDBProvider) -> None:
        for key, session in ((KEY, "s1"), (OTHER, "s2")):
            start_lane(store, key, session)
        accept(store, "a", kind="queue")
        taken = store.turns.claim_next("n1")
        assert taken is not None
        store.turns.hold(taken.lease, reason="stopped")
        store.turns.release(taken.lease)
        assert store.lanes.prune(NOW + 1) == 1
        assert (store.lanes.get(KEY) is None, store.lanes.get(OTHER) is None) == (False, True)
        store._engine.write(lambda tx: tx.run("DELETE FROM lanes"))
        store._engine.write(lambda tx: tx.run("UPDATE lane_queues SET lease_token = 1"))
        assert (store.lanes.prune(NOW + 1), broken_rules(store)) == (0, [])
        assert store.inbox.discard_waiting(KEY, "new session") == 1


class TestInterrupting:
    def test_the_messages_wait_in_their_old_place(self, store: SessionDBProvider) -> None:
        start_lane(store)
        for name in "abc":
            accept(store, name)
        taken = claim(store)
        steer = accept(store, "d", kind="steer").message["id"]
        store.turns.join(taken.lease, turn_of(taken), [steer])
        result = store.turns.interrupt(taken.lease, turn_of(taken), reason="shutdown", intents=[reply("stopped")])
        assert (result.waiting, result.lease, result.dead) == (4, taken.lease, ())
        rows = store.inbox.waiting(KEY)
        assert [(row["message_id"], row["attempts"], row["turn_id"]) for row in rows] == [
            (name, 0, None) for name in "abcd"
        ]
        turn = store.turns.get(turn_of(taken))
        assert turn is not None
        assert (turn["state"], turn["reason"], turn["session_id"]) == ("interrupted", "shutdown", "s1")
        assert [row["key"] for row in store.outbox.of_turn(turn_of(taken))] == ["stopped"]
        assert broken_rules(store) == []
        assert store.turns.claim_next("n2") is None
        assert store.turns.start(taken.lease, [rows[0]["id"]]) != taken.turn_id

    def test_the_lease_can_be_given_back(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        result = store.turns.interrupt(taken.lease, turn_of(taken), keep_lease=False)
        assert (result.waiting, result.lease) == (1, None)
        assert names(claim(store, "n2").started) == ["a"]
        assert broken_rules(store) == []

    @pytest.mark.parametrize("keep", [True, False])
    def test_twice_is_the_same_as_once(self, store: SessionDBProvider, keep: bool) -> None:
        accept(store, "a")
        taken = claim(store)
        arguments: dict[str, Any] = {"intents": [reply()], "keep_lease": keep}
        results = [store.turns.interrupt(taken.lease, turn_of(taken), **arguments) for _ in range(2)]
        assert results[0] == results[1]
        assert len(store.outbox.pending()) == 1
        with pytest.raises(Conflict if keep else StaleLease):
            store.turns.finish(taken.lease, turn_of(taken))

    def test_interruptions_never_kill_a_message(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        for _ in range(5):
            taken = claim(store)
            assert taken.started[0]["attempts"] == 1
            store.turns.interrupt(taken.lease, turn_of(taken), keep_lease=False)
        assert (state_of(store, "a"), store.inbox.dead()) == ("accepted", [])

    def test_held_messages_stay_held(self, store: SessionDBProvider) -> None:
        taken = fill(store)
        store.turns.hold(taken.lease, reason="stopped")
        assert store.turns.interrupt(taken.lease, turn_of(taken)).waiting == 2
        assert (names(store.inbox.waiting(KEY)), names(store.inbox.held(KEY))) == (["a", "c"], ["b", "d"])


class TestLeasesOfNodes:
    def test_the_lanes_of_a_dead_node_can_be_claimed_at_once(self, store: SessionDBProvider) -> None:
        for name, key in (("a", KEY), ("b", OTHER), ("c", "third")):
            accept(store, name, key)
        first, _, third = claim(store, "dead/1"), claim(store, "dead/1"), claim(store, "alive/1")
        assert store.turns.claim_next("n2") is None
        assert [store.turns.end_leases("dead/1") for _ in range(2)] == [2, 0]
        assert store.turns.end_leases("unknown") == 0
        taken = [claim(store, "n2") for _ in range(2)]
        assert sorted(names([each.started[0] for each in taken])) == ["a", "b"]
        assert {each.lost and each.lost["node"] for each in taken} == {"dead/1"}
        assert store.turns.claim_next("n2") is None
        assert store.turns.renew(third.lease).token == third.lease.token
        assert taken[0].lease.token > first.lease.token
        assert broken_rules(store) == []

    def test_a_watch_sees_that_they_ended(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        claim(store, "dead")
        watch = store.turns.watch("n2")
        assert not watch.wait(0.0)
        store.turns.end_leases("dead")
        assert watch.wait(0.0)
        watch.close()

    def test_a_lane_that_rests_belongs_to_no_node(self, store: SessionDBProvider) -> None:
        accept(store, "a")
        taken = claim(store)
        store.turns.fail(taken.lease, turn_of(taken), "overload", delay_seconds=600)
        assert (store.turns.end_leases("n1"), store.turns.waiting_of("n1")) == (0, {})

    def test_the_lanes_of_a_node_in_which_messages_wait(self, store: SessionDBProvider) -> None:
        long = "agent:main:telegram:group:" + "x" * 1_000
        for name, key in (("a", KEY), ("b", long), ("c", OTHER)):
            accept(store, name, key)
        claims = [claim(store, node) for node in ("n1", "n1", "n2")]
        assert store.turns.waiting_of("n1") == {}
        for name, key in (("d", KEY), ("e", long), ("f", long), ("g", OTHER), ("h", "free")):
            accept(store, name, key, kind="queue")
        assert store.turns.waiting_of("n1") == {KEY: 1, long: 2}
        assert store.turns.waiting_of("n2") == {OTHER: 1}
        store.turns.hold(claims[0].lease, reason="stopped")
        store.turns.release(claims[1].lease)
        assert (store.turns.waiting_of("n1"), store.turns.waiting_of("other")) == ({}, {})

    def test_the_lanes_with_work_whose_keys_begin_alike(self, store: SessionDBProvider) -> None:
        long = f"{KEY}:background:" + "x" * 1_000
        for name, key in (("a", f"{KEY}:background:1"), ("b", f"{KEY}:background:2"), ("c", long), ("d", KEY)):
            accept(store, name, key)
        accept(store, "e", f"{OTHER}:background:1")
        prefix = f"{KEY}:background:"
        every = {f"{prefix}1", f"{prefix}2", long}
        assert store.turns.busy_lanes(prefix) == every
        taken = claim(store)
        assert store.turns.busy_lanes(prefix) == every
        store.turns.finish(taken.lease, turn_of(taken))
        assert store.turns.busy_lanes(prefix) == every - {f"{prefix}1"}
        assert store.turns.busy_lanes("agent:none") == set()
