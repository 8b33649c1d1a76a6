"""Two calls about one lane at the same time, in every order of their steps: nothing is lost, doubled or left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from hermes.errors import StaleLease
from hermes.state.lanes.queue.leases import turn_of_normal
from hermes.state.lanes.types import Claim, ImportedLane, Keep, LaneRow, NewSession, Start
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import accept, broken_rules, claim, reply, start_lane, turn_of
from tests.support.schedules import Call, Outcome, interleave, schedules, steps_are_scheduled
from tests.support.stores import Opener


@pytest.fixture(autouse=True)
def scheduled() -> Iterator[None]:
    """Let calls stop before every step."""
    with steps_are_scheduled():
        yield


@dataclass
class Scene:
    """A lane of its own for one schedule, and two handles on the store."""

    one: SessionDBProvider
    two: SessionDBProvider
    name: str

    @property
    def key(self) -> str:
        """The key of the lane."""
        return f"lane {self.name}"

    def accept(self, store: SessionDBProvider, message: str, key: str = "") -> Any:
        """Accept a message of this scene."""
        return accept(store, f"{self.name} {message}", key or self.key)

    def claim(self, store: SessionDBProvider, node: str, seconds: float = 60.0) -> Claim | None:
        """Claim the lane of this scene, with a turn of all its messages."""
        return store.turns.claim_next(node, seconds, choose=turn_of_normal)

    def states(self) -> list[str]:
        """The states of the lane's messages, in order."""
        sql = "SELECT state FROM inbox WHERE message_ref LIKE :like ORDER BY id"
        return [row[0] for row in self.one._engine.read(lambda tx: tx.rows(sql, like=f"{self.name} %"))]

    def drain(self) -> list[str]:
        """Finish everything that can be claimed, and return the names of the messages in the order of their turns."""
        order = []
        while (found := self.claim(self.one, "drain")) is not None:
            order += [str(row["message_id"]).removeprefix(f"{self.name} ") for row in found.started]
            if found.turn_id is None:
                self.one.turns.release(found.lease)
            else:
                self.one.turns.finish(found.lease, found.turn_id)
        return order


Play = Callable[[Scene], tuple[Call, Call, Callable[[Outcome, Outcome], None]]]


def play(open_store: Opener, arrange: Play) -> None:
    """Run two calls in every schedule, each in a new lane; then check the rules, and that nothing is left."""
    one, two = open_store(), open_store()
    skipped: set[tuple[int, int]] = set()
    for first, second in schedules():
        if (first - 1, second) in skipped or (first, second - 1) in skipped:
            skipped.add((first, second))
            continue
        scene = Scene(one, two, f"{first}.{second}")
        this, that, check = arrange(scene)
        ends = interleave(this, that, first, second)
        if ends[2]:
            skipped.add((first, second))
        check(ends[0], ends[1])
        assert broken_rules(one) == [], (first, second)
        end_all(one)
        scene.drain()
        assert {*scene.states()} <= {"done", "discarded", "dead"}, (first, second)
        assert one.inbox.totals().waiting == 0


def end_all(store: SessionDBProvider) -> None:
    """Let every lease end, so that what is left can be claimed."""
    store._engine.write(lambda tx: tx.run("UPDATE lane_queues SET lease_until = 1 WHERE lease_until > 0"))


def only_stale(*outcomes: Outcome) -> int:
    """Return how many calls lost their lease; no other error may happen."""
    errors = [each.error for each in outcomes if each.error is not None]
    assert all(isinstance(each, StaleLease) for each in errors), errors
    return len(errors)


def test_a_message_that_arrives_during_a_claim_is_claimed_or_waits(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        scene.accept(scene.one, "first")

        def check(accepted: Outcome, claimed: Outcome) -> None:
            assert only_stale(accepted, claimed) == 0
            taken = claimed.result
            if taken is None:  # the row was locked at that moment
                assert scene.drain() == ["first", "second"]
                return
            assert taken.waiting + len(taken.started) in (1, 2)
            scene.one.turns.finish(taken.lease, taken.turn_id)
            assert scene.drain() == ([] if len(taken.started) == 2 else ["second"])

        return lambda: scene.accept(scene.one, "second"), lambda: scene.claim(scene.two, "n2"), check

    play(open_store, arrange)


@pytest.mark.parametrize("way", ["release", "interrupt", "finish", "fail"])
def test_a_message_that_arrives_while_a_lane_is_given_back_is_not_left_behind(open_store: Opener, way: str) -> None:
    def arrange(scene: Scene) -> Any:
        scene.accept(scene.one, "first")
        taken = scene.claim(scene.one, "n1")
        assert taken is not None
        turn = turn_of(taken)
        turns = scene.two.turns
        ends: dict[str, Call] = {
            "release": lambda: turns.release(taken.lease),
            "interrupt": lambda: turns.interrupt(taken.lease, turn, keep_lease=False),
            "finish": lambda: turns.finish(taken.lease, turn),
            "fail": lambda: turns.fail(taken.lease, turn, "why", retry=False),
        }

        def check(accepted: Outcome, ended: Outcome) -> None:
            assert only_stale(accepted, ended) == 0
            assert scene.drain() == (["first", "second"] if way in ("release", "interrupt") else ["second"])
            scene.one._engine.write(lambda tx: tx.run("UPDATE inbox SET state = 'done' WHERE is_open = 0"))

        return lambda: scene.accept(scene.one, "second"), ends[way], check

    play(open_store, arrange)


def test_the_first_two_messages_of_a_chat_have_one_queue(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        def check(one: Outcome, other: Outcome) -> None:
            assert only_stale(one, other) == 0
            assert sorted((one.result.waiting, other.result.waiting)) == [1, 2]
            assert scene.one.inbox.depth(scene.key) == 2

        return lambda: scene.accept(scene.one, "a"), lambda: scene.accept(scene.two, "b"), check

    play(open_store, arrange)


@pytest.mark.parametrize("is_same_lane", [True, False])
def test_a_message_that_is_delivered_twice_at_once_is_accepted_once(open_store: Opener, is_same_lane: bool) -> None:
    def arrange(scene: Scene) -> Any:
        def check(one: Outcome, other: Outcome) -> None:
            assert only_stale(one, other) == 0
            assert sorted((one.result.state, other.result.state)) == ["accepted", "known"]
            assert one.result.message["id"] == other.result.message["id"]
            assert scene.drain() == ["a"]

        key = scene.key if is_same_lane else f"{scene.key} of another node"
        return lambda: scene.accept(scene.one, "a"), lambda: scene.accept(scene.two, "a", key), check

    play(open_store, arrange)


def test_two_nodes_do_not_claim_the_same_lane(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        scene.accept(scene.one, "a")

        def check(one: Outcome, other: Outcome) -> None:
            assert only_stale(one, other) == 0
            assert [one.result, other.result].count(None) == 1

        return lambda: scene.claim(scene.one, "n1"), lambda: scene.claim(scene.two, "n2"), check

    play(open_store, arrange)


def test_two_nodes_do_not_take_over_the_same_lane(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        scene.accept(scene.one, "a")
        scene.claim(scene.one, "n0", 0.0)

        def check(one: Outcome, other: Outcome) -> None:
            assert only_stale(one, other) == 0
            assert [one.result, other.result].count(None) == 1

        return lambda: scene.claim(scene.one, "n1"), lambda: scene.two.turns.acquire(scene.key, "n2"), check

    play(open_store, arrange)


@pytest.mark.parametrize("way", ["renew", "progress", "finish", "release", "hold"])
def test_either_the_holder_writes_or_the_lane_is_taken_over(open_store: Opener, way: str) -> None:
    def arrange(scene: Scene) -> Any:
        scene.accept(scene.one, "a")
        taken = scene.claim(scene.one, "n1", 0.0)
        assert taken is not None
        turn, turns = turn_of(taken), scene.one.turns
        scene.accept(scene.one, "b")
        calls: dict[str, Call] = {
            "renew": lambda: turns.renew(taken.lease),
            "progress": lambda: turns.progress(taken.lease, turn, lease_seconds=60),
            "finish": lambda: turns.finish(taken.lease, turn, intents=[reply(f"{scene.name} reply")]),
            "release": lambda: turns.release(taken.lease),
            "hold": lambda: turns.hold(taken.lease, kinds=None, reason="stopped"),
        }

        def check(written: Outcome, stolen: Outcome) -> None:
            is_stale = only_stale(written, stolen) == 1
            claimed = stolen.result
            has_reply = scene.one.outbox.find(f"{scene.name} reply") is not None
            if is_stale:
                assert claimed is not None
                assert claimed.lost["turn_id"] == turn
                assert not has_reply
            elif claimed is not None:
                # The holder was first: it gave the lane back, or wrote before its lease passed on.
                assert (claimed.lost is None) == (way in ("finish", "release"))
            assert has_reply == (way == "finish" and not is_stale)
            if way == "hold":
                assert len(scene.one.inbox.held(scene.key)) == (not is_stale)
                scene.one.inbox.discard_waiting(scene.key, "test")

        return calls[way], lambda: scene.claim(scene.two, "n2"), check

    play(open_store, arrange)


def test_a_message_that_arrives_while_others_are_held_is_counted(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        scene.accept(scene.one, "a")
        taken = scene.one.turns.acquire(scene.key, "n1")
        assert taken is not None

        def check(held: Outcome, accepted: Outcome) -> None:
            assert only_stale(held, accepted) == 0
            assert scene.one.inbox.depth(scene.key) == 2 - held.result
            assert scene.one.turns.unhold(taken.lease) == held.result
            scene.one.turns.release(taken.lease)
            assert scene.drain() == ["a", "b"]

        hold = partial(scene.one.turns.hold, taken.lease, kinds=None, reason="stopped")
        return hold, lambda: scene.accept(scene.two, "b"), check

    play(open_store, arrange)


def test_discarding_during_a_claim_loses_no_count(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        scene.accept(scene.one, "a")
        scene.accept(scene.one, "b")

        def check(discarded: Outcome, claimed: Outcome) -> None:
            assert only_stale(discarded, claimed) == 0
            started = 0 if claimed.result is None else len(claimed.result.started)
            assert discarded.result + started == 2

        return (
            lambda: scene.one.inbox.discard_waiting(scene.key, "new"),
            lambda: scene.claim(scene.two, "n2"),
            check,
        )

    play(open_store, arrange)


def test_a_dead_message_is_retried_or_given_up_once(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        number = scene.accept(scene.one, "a").message["id"]
        taken = claim(scene.one)
        scene.one.turns.park(taken.lease, turn_of(taken), "why")

        def check(retried: Outcome, deleted: Outcome) -> None:
            assert only_stale(retried, deleted) == 0
            assert sorted((retried.result, deleted.result)) == [False, True]
            assert scene.drain() == (["a"] if retried.result else [])
            scene.one._engine.write(lambda tx: tx.run("UPDATE inbox SET state = 'done' WHERE state = 'parked'"))

        return lambda: scene.one.inbox.retry(number), lambda: scene.two.inbox.delete(number), check

    play(open_store, arrange)


def test_a_lane_is_pruned_or_gets_a_message(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        start_lane(scene.one, scene.key, f"session {scene.name}")
        taken = scene.one.turns.acquire(scene.key, "n1")
        assert taken is not None
        scene.one.turns.release(taken.lease)

        def check(pruned: Outcome, accepted: Outcome) -> None:
            assert only_stale(pruned, accepted) == 0
            assert (accepted.result.state, pruned.result in (0, 1)) == ("accepted", True)
            found = scene.claim(scene.one, "n2")
            assert found is not None
            assert found.lease.token > taken.lease.token
            scene.one.turns.finish(found.lease, turn_of(found))
            scene.one.lanes.prune(1e12)

        return lambda: scene.one.lanes.prune(1e12), lambda: scene.accept(scene.two, "a"), check

    play(open_store, arrange)


def test_a_new_lane_gets_one_session(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        def resolve(store: SessionDBProvider, name: str) -> Any:
            def decide(row: LaneRow | None, now: float) -> Keep | Start:
                return Start(NewSession(f"{scene.name} {name}", "telegram")) if row is None else Keep()

            return store.lanes.resolve(scene.key, decide)

        before = scene.one.session_count()

        def check(one: Outcome, other: Outcome) -> None:
            assert only_stale(one, other) == 0
            assert sorted((one.result.is_new_session, other.result.is_new_session)) == [False, True]
            assert one.result.lane["session_id"] == other.result.lane["session_id"]
            assert scene.one.session_count() == before + 1

        return lambda: resolve(scene.one, "a"), lambda: resolve(scene.two, "b"), check

    play(open_store, arrange)


def test_a_message_is_sent_by_one_node(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        for name in ("x", "y"):
            scene.one.outbox.intend(reply(f"{scene.name} {name}", session_key=scene.key))

        def check(one: Outcome, other: Outcome) -> None:
            assert only_stale(one, other) == 0
            rows = [*one.result, *other.result]
            assert [row["key"] for row in rows] == [f"{scene.name} x"]
            scene.one.outbox.sent(rows[0]["id"], 1)
            (row,) = scene.one.outbox.sending("n1")
            scene.one.outbox.sent(row["id"], 1)

        return lambda: scene.one.outbox.sending("n1"), lambda: scene.two.outbox.sending("n2"), check

    play(open_store, arrange)


def test_a_message_that_a_client_confirms_while_a_node_takes_it_is_sent(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        number = scene.one.outbox.intend(reply(f"{scene.name} x", session_key=scene.key))["id"]

        def check(confirmed: Outcome, taken: Outcome) -> None:
            assert (only_stale(confirmed, taken), confirmed.result) == (0, True)
            for row in taken.result:
                scene.two.outbox.sent(row["id"], row["attempts"])
            stored = scene.one.outbox.get(number)
            assert stored is not None
            assert (stored["state"], stored["due_at"], scene.one.outbox.next_due()) == ("sent", 0.0, None)

        return lambda: scene.one.outbox.confirm(number), lambda: scene.two.outbox.sending("n2"), check

    play(open_store, arrange)


def test_a_connector_has_one_holder(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        def check(one: Outcome, other: Outcome) -> None:
            assert only_stale(one, other) == 0
            assert [one.result, other.result].count(None) == 1

        return (
            lambda: scene.one.connectors.acquire(scene.name, "n1"),
            lambda: scene.two.connectors.acquire(scene.name, "n2"),
            check,
        )

    play(open_store, arrange)


def test_a_file_is_imported_once(open_store: Opener) -> None:
    def arrange(scene: Scene) -> Any:
        def forget(table: str, condition: str = "1 = 1") -> None:
            scene.one._engine.write(lambda tx: tx.run(f"DELETE FROM {table} WHERE {condition}"))

        forget("lanes")
        forget("state_meta", "\"key\" = 'lanes_imported'")
        rows = [ImportedLane(f"{scene.key} {n}", NewSession(f"{scene.name} {n}", "telegram")) for n in range(3)]

        def check(one: Outcome, other: Outcome) -> None:
            assert only_stale(one, other) == 0
            assert [one.result, other.result].count(None) == 1
            assert scene.one.lanes.count() == 3

        return lambda: scene.one.lanes.import_once(rows), lambda: scene.two.lanes.import_once(rows), check

    play(open_store, arrange)
