"""Random operations on lanes, inbox, leases and outbox of a store and of a plain model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hermes.errors import Conflict, StaleLease
from hermes.state.lanes.queue.leases import turn_of_normal, turn_of_one
from hermes.state.lanes.types import Claim
from hermes.state.provider import SessionDBProvider
from tests.property.lane_model import Lane, LaneModel, Message
from tests.support.lanes import accept, broken_rules, end_leases, reply

indexes = st.integers(0, 20)
lanes = st.sampled_from(["a", "b", "c"])
nodes = st.sampled_from(["n1", "n2"])
kinds = st.sampled_from(["normal", "normal", "queue", "command"])
choices = st.sampled_from([None, turn_of_one, turn_of_normal])


class LaneMachine(RuleBasedStateMachine):
    """A store and a model. Claims are remembered, also those whose lease is lost, and all of them are used."""

    open: Callable[[], SessionDBProvider]
    """Opens an empty store; set by subclasses."""

    def __init__(self) -> None:
        super().__init__()
        self.db = type(self).open()
        self.model = LaneModel()
        self.claims: list[tuple[Claim, str | None]] = []
        """Claims, and the turn that each of them started last."""
        self.made = 0

    def teardown(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.db.close()

    def name(self) -> str:
        """A new name."""
        self.made += 1
        return f"x{self.made}"

    def lane(self, key: str) -> Lane:
        """The lane of the model with this key."""
        return self.model.lanes.setdefault(key, Lane(key))

    @rule(key=lanes, kind=kinds)
    def accept_new(self, key: str, kind: Any) -> None:
        name = self.name()
        found = accept(self.db, name, key, kind=kind)
        self.lane(key)
        self.model.messages[name] = Message(name, key, found.message["id"], kind)
        assert (found.state, found.waiting) == ("accepted", len(self.model.waiting(key)))

    @rule(key=lanes, index=indexes)
    @precondition(lambda self: self.model.messages)
    def accept_again(self, key: str, index: int) -> None:
        known = list(self.model.messages.values())
        message = known[index % len(known)]
        # The logical key names the chat, so only the delivery id repeats in another lane.
        assert accept(self.db, message.name, key).message["id"] == message.order

    @rule(node=nodes, choose=choices, is_short=st.booleans(), limit=st.integers(1, 3))
    def claim(self, node: str, choose: Any, is_short: bool, limit: int) -> None:
        ready, ended = self.model.ready(), self.model.ended()
        found = self.db.turns.claim_next(node, 0.0 if is_short else 60.0, choose=choose, limit=limit)
        self.note_cleared()
        if found is None:
            assert (ready, ended) == (None, [])
            return
        lane = self.lane(found.lease.session_key)
        assert lane in ([ready] if ready else []) + ended
        self.note_claim(lane, found, choose, is_short, limit)

    def note_cleared(self) -> None:
        """Free the lanes in the model that a claim has cleared: their lease was over, and they had nothing to do."""
        sql = "SELECT lane_id FROM lane_queues WHERE lease_until = 0"
        free = {row[0] for row in self.db._engine.read(lambda tx: tx.rows(sql))}
        for lane in self.model.lanes.values():
            if lane.is_ended and lane.key in free and not self.model.has_work(lane):
                self.model.free(lane)

    @rule(key=lanes, node=nodes, choose=choices, is_short=st.booleans())
    def acquire(self, key: str, node: str, choose: Any, is_short: bool) -> None:
        lane = self.lane(key)
        found = self.db.turns.acquire(key, node, 0.0 if is_short else 60.0, choose=choose)
        assert (found is None) == (lane.token is not None and not lane.is_ended)
        if found is not None:
            self.note_claim(lane, found, choose, is_short, 32)

    def note_claim(self, lane: Lane, found: Claim, choose: Any, is_short: bool, limit: int) -> None:
        """Compare a claim with the model, and do the same there."""
        assert (found.lost is not None) == (lane.turn is not None)
        assert [row["message_id"] for row in found.dead] == self.model.recover(lane)
        waiting = self.model.waiting(lane.key)
        seen = [{"id": each.order, "kind": each.kind} for each in waiting[:limit]]
        chosen = [] if choose is None else list(choose(seen))
        started = [each.name for each in waiting if each.order in chosen]
        self.model.lease(lane, found.lease.token, found.lease.node)
        lane.is_ended = is_short
        assert (found.turn_id is not None) == bool(started)
        assert [row["message_id"] for row in found.started] == started
        assert [row["message_id"] for row in found.messages] == [
            each.name for each in waiting[:limit] if each.name not in started
        ]
        assert found.waiting == len(waiting) - len(started)
        if found.turn_id is not None:
            self.model.start(lane, found.turn_id, started)
        self.claims.append((found, found.turn_id))

    def with_claim(self, index: int, call: Callable[[Claim, str], Any], *, needs_turn: bool = True) -> Lane | None:
        """Use a claim; return its lane if the call was allowed, None if it raised as it should."""
        position = index % len(self.claims)
        found, turn = self.claims[position]
        lane = self.lane(found.lease.session_key)
        if lane.token != found.lease.token:
            with pytest.raises(StaleLease):
                call(found, turn or "none")
            return None
        if needs_turn and (turn is None or lane.turn != turn):
            with pytest.raises(Conflict):
                call(found, turn or "none")
            return None
        return lane

    @rule(index=indexes, keep=st.booleans())
    @precondition(lambda self: self.claims)
    def finish(self, index: int, keep: bool) -> None:
        found, turn = self.claims[index % len(self.claims)]
        if turn is not None and self.has_ended_as(turn, "finished"):
            return
        name = self.name()

        def call(claim: Claim, turn: str) -> Any:
            return self.db.turns.finish(claim.lease, turn, intents=[reply(name)], keep_lease=keep)

        lane = self.with_claim(index, call)
        if lane is not None:
            result = call(found, turn or "")
            self.end(lane, "done", keep, name)
            assert result.waiting == len(self.model.waiting(lane.key))

    @rule(index=indexes, keep=st.booleans(), retry=st.booleans(), delay=st.sampled_from([0.0, 0.0, 600.0]))
    @precondition(lambda self: self.claims)
    def fail(self, index: int, keep: bool, retry: bool, delay: float) -> None:
        found, turn = self.claims[index % len(self.claims)]
        if turn is not None and self.has_ended_as(turn, "failed"):
            return

        def call(claim: Claim, turn: str) -> Any:
            return self.db.turns.fail(claim.lease, turn, "why", retry=retry, delay_seconds=delay, keep_lease=keep)

        lane = self.with_claim(index, call)
        if lane is None:
            return
        result = call(found, turn or "")
        dead = []
        for each in self.model.running(lane.key):
            is_dead = retry and each.attempts >= 3
            each.state = "dead" if is_dead else "accepted" if retry else "failed"
            dead += [each.order] * is_dead
        assert list(result.dead) == dead
        lane.turn, lane.has_progress = None, False
        if not keep:
            self.model.free(lane, is_resting=delay > 0)

    @rule(index=indexes, keep=st.booleans(), state=st.sampled_from(["discarded", "parked"]))
    @precondition(lambda self: self.claims)
    def give_up(self, index: int, keep: bool, state: str) -> None:
        found, turn = self.claims[index % len(self.claims)]
        if turn is not None and self.has_ended_as(turn, state):
            return
        method = self.db.turns.discard if state == "discarded" else self.db.turns.park

        def call(claim: Claim, turn: str) -> Any:
            return method(claim.lease, turn, "why", keep_lease=keep)

        lane = self.with_claim(index, call)
        if lane is not None:
            call(found, turn or "")
            self.end(lane, state, keep, None)

    @rule(index=indexes, keep=st.booleans())
    @precondition(lambda self: self.claims)
    def interrupt(self, index: int, keep: bool) -> None:
        found, turn = self.claims[index % len(self.claims)]
        if turn is not None and self.has_ended_as(turn, "interrupted"):
            return

        def call(claim: Claim, turn: str) -> Any:
            return self.db.turns.interrupt(claim.lease, turn, keep_lease=keep)

        lane = self.with_claim(index, call)
        if lane is not None:
            result = call(found, turn or "")
            for each in self.model.running(lane.key):
                each.attempts -= 1
            self.end(lane, "accepted", keep, None)
            assert (result.waiting, result.lease is not None) == (len(self.model.waiting(lane.key)), keep)

    @rule(index=indexes, kinds=st.sampled_from([None, ["queue"], ["normal", "command"]]), is_held=st.booleans())
    @precondition(lambda self: self.claims)
    def hold_or_unhold(self, index: int, kinds: list[str] | None, is_held: bool) -> None:
        def call(claim: Claim, _: str) -> int:
            turns = self.db.turns
            return turns.hold(claim.lease, kinds=kinds, reason="why") if is_held else turns.unhold(claim.lease)

        lane = self.with_claim(index, call, needs_turn=False)
        if lane is not None:
            waiting = [each for each in self.model.waiting(lane.key) if kinds is None or each.kind in kinds]
            moved = waiting if is_held else self.model.held(lane.key)
            assert call(self.claims[index % len(self.claims)][0], "") == len(moved)
            for each in moved:
                each.state = "held" if is_held else "accepted"

    @rule(node=nodes)
    def end_leases_of(self, node: str) -> None:
        ended = [lane for lane in self.model.lanes.values() if lane.node == node and not lane.is_ended]
        assert self.db.turns.end_leases(node) == len(ended)
        for lane in ended:
            lane.is_ended = True

    def has_ended_as(self, turn: str, state: str) -> bool:
        """Whether a turn ended in a state: repeating that call is allowed and changes nothing."""
        row = self.db.turns.get(turn)
        return row is None or row["state"] == state

    def end(self, lane: Lane, state: str, keep: bool, name: str | None) -> None:
        """Do the same in the model."""
        for each in self.model.running(lane.key):
            each.state = state
        lane.turn, lane.has_progress = None, False
        if name is not None:
            self.model.replies.append(name)
        if not keep:
            self.model.free(lane)

    @rule(index=indexes)
    @precondition(lambda self: self.claims)
    def release(self, index: int) -> None:
        found, _ = self.claims[index % len(self.claims)]
        lane = self.with_claim(index, lambda claim, _: self.db.turns.release(claim.lease), needs_turn=False)
        if lane is not None:
            waiting = self.db.turns.release(found.lease)
            for each in self.model.running(lane.key):
                each.state, each.attempts = "accepted", each.attempts - 1
            self.model.free(lane)
            assert waiting == len(self.model.waiting(lane.key))

    @rule(index=indexes, is_short=st.booleans())
    @precondition(lambda self: self.claims)
    def renew(self, index: int, is_short: bool) -> None:
        found, _ = self.claims[index % len(self.claims)]
        seconds = 0.0 if is_short else 60.0
        lane = self.with_claim(index, lambda claim, _: self.db.turns.renew(claim.lease, seconds), needs_turn=False)
        if lane is not None:
            assert self.db.turns.renew(found.lease, seconds).token == lane.token
            lane.is_ended = is_short

    @rule(index=indexes)
    @precondition(lambda self: self.claims)
    def progress(self, index: int) -> None:
        found, turn = self.claims[index % len(self.claims)]

        def call(claim: Claim, turn: str) -> Any:
            return self.db.turns.progress(claim.lease, turn, {"n": 1})

        lane = self.with_claim(index, call)
        if lane is not None:
            call(found, turn or "")
            lane.has_progress = True

    @rule(index=indexes, joins=st.booleans(), count=st.integers(1, 2))
    @precondition(lambda self: self.claims)
    def start_or_join(self, index: int, joins: bool, count: int) -> None:
        position = index % len(self.claims)
        found, turn = self.claims[position]
        lane = self.lane(found.lease.session_key)
        chosen = self.model.waiting(lane.key)[-count:]
        ids = [each.order for each in chosen]
        if lane.token != found.lease.token or not ids:
            return
        if joins:
            if turn is None or lane.turn != turn:
                return
            self.db.turns.join(found.lease, turn, ids)
        elif lane.turn is not None:
            with pytest.raises(Conflict):
                self.db.turns.start(found.lease, ids)
            return
        else:
            turn = self.db.turns.start(found.lease, ids)
            self.claims[position] = (found, turn)
        self.model.start(lane, turn, [each.name for each in chosen])

    @rule(index=indexes, state=st.sampled_from(["done", "discarded"]))
    @precondition(lambda self: self.claims)
    def settle(self, index: int, state: str) -> None:
        found, _ = self.claims[index % len(self.claims)]
        lane = self.lane(found.lease.session_key)
        waiting = self.model.waiting(lane.key)
        if lane.token == found.lease.token and waiting:
            self.db.turns.settle(found.lease, [waiting[-1].order], state=state)
            waiting[-1].state = state

    @rule(key=lanes, kinds=st.sampled_from([None, ["queue"]]))
    def discard_waiting(self, key: str, kinds: list[str] | None) -> None:
        here = [*self.model.waiting(key), *self.model.held(key)]
        gone = [each for each in here if kinds is None or each.kind in kinds]
        assert self.db.inbox.discard_waiting(key, "new", kinds=kinds) == len(gone)
        for each in gone:
            each.state = "discarded"

    @rule(index=indexes, gives_up=st.booleans())
    @precondition(lambda self: self.model.messages)
    def handle_dead(self, index: int, gives_up: bool) -> None:
        every = list(self.model.messages.values())
        message = every[index % len(every)]
        is_dead = message.state in ("dead", "parked")
        assert (self.db.inbox.delete if gives_up else self.db.inbox.retry)(message.order) == is_dead
        if is_dead:
            message.state, message.attempts = ("deleted", message.attempts) if gives_up else ("accepted", 0)

    @rule()
    def end_all_leases(self) -> None:
        end_leases(self.db)
        for lane in self.model.lanes.values():
            lane.is_ended = lane.token is not None or lane.is_resting

    @rule()
    def sweep(self) -> None:
        gone = [each.name for each in self.model.messages.values() if each.state in KNOWN_ENDS]
        assert self.db.inbox.sweep(0) == len(gone)
        for name in gone:
            del self.model.messages[name]
        self.db.turns.sweep(0)

    @invariant()
    def every_message_is_as_in_the_model(self) -> None:
        rows = self.db._engine.read(
            lambda tx: tx.rows("SELECT message_ref, state, attempts, payload, dead_at FROM inbox")
        )
        stored = {
            name: (state if payload is not None or state not in ("dead", "parked") else "deleted", attempts)
            for name, state, attempts, payload, _ in rows
        }
        assert stored == {each.name: (each.state, each.attempts) for each in self.model.messages.values()}

    @invariant()
    def the_lists_of_nodes_and_held_messages_are_those_of_the_model(self) -> None:
        for node in ("n1", "n2"):
            lanes = [lane.key for lane in self.model.lanes.values() if lane.node == node]
            waiting = {key: len(self.model.waiting(key)) for key in lanes if self.model.waiting(key)}
            assert self.db.turns.waiting_of(node) == waiting
        for key in self.model.lanes:
            assert [row["id"] for row in self.db.inbox.held(key)] == [each.order for each in self.model.held(key)]

    @invariant()
    def no_rule_is_broken(self) -> None:
        assert broken_rules(self.db) == []

    @invariant()
    def every_reply_is_stored_once(self) -> None:
        assert [row["key"] for row in self.db.outbox.pending(limit=None)] == self.model.replies


KNOWN_ENDS = ("done", "failed", "discarded", "deleted")
