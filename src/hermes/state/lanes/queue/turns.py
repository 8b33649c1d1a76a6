"""Turns: the work of a node on messages of a lane. Every write compares the token of the lease in its transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hermes.errors import Conflict, InvalidValue
from hermes.state.engine import Transaction, Values
from hermes.state.lanes.delivery.intents import add_intents, draft_intents
from hermes.state.lanes.entries import touch_lane
from hermes.state.lanes.identity import optional_payload, require_reason
from hermes.state.lanes.lane_rows import encode_fields, touched_fields
from hermes.state.lanes.queue.claiming import run_messages, start_turn
from hermes.state.lanes.queue.holding import Holding
from hermes.state.lanes.queue.leases import Leases
from hermes.state.lanes.queue.message_rows import (
    MAX_ATTEMPTS,
    TURN_OF_LANE,
    TURN_WIDTH,
    end_messages,
    end_turn,
    give_up_messages,
    require_ids,
    return_messages,
    turn_row,
)
from hermes.state.lanes.queue.queue_row import NOTHING, QueueRow, lock_for_lease, require_lease, require_lease_seconds
from hermes.state.lanes.queue.turn_records import TurnRecords
from hermes.state.lanes.types import Finished, Lease
from hermes.state.operations import placeholders
from hermes.state.rows import require_identifier, require_number

if TYPE_CHECKING:
    from hermes.state.lanes.delivery.intents import IntentDraft
    from hermes.state.lanes.queue.watch import LaneWatch
    from hermes.state.lanes.types import Intent, LaneFields

END_STATES = ("done", "discarded", "failed")

_SETTLE = """UPDATE inbox SET state = :state, is_open = 0, reason = :reason, started_at = :now, finished_at = :now,
                 payload = NULL WHERE lane_id = :lane AND is_open = 1 AND state = 'accepted' AND id IN ({listed})"""
_PROGRESS = """UPDATE turns SET progress = progress + 1, progressed_at = :now, note = COALESCE(:note, note)
               WHERE turn_id = :turn"""
_WAITING = """SELECT id FROM inbox WHERE lane_id = :locked AND is_open = 1 AND state = 'accepted'
              AND id IN ({listed})"""


class Turns(Leases, Holding, TurnRecords):
    """Operations on turns, and on the leases under which they run."""

    def start(self, lease: Lease, message_ids: Sequence[int]) -> str:
        """Start a turn with waiting messages of a leased lane and return its id; each message counts an attempt."""
        return self._take(lease, message_ids, start_turn, None)

    def join(self, lease: Lease, turn_id: str, message_ids: Sequence[int]) -> None:
        """Add waiting messages to the turn that runs, such as those that change its course."""

        def add(tx: Transaction, queue: QueueRow, ids: Sequence[int]) -> str:
            run_messages(tx, queue, turn_id, ids)
            return turn_id

        self._take(lease, message_ids, add, require_identifier(turn_id, "turn_id"))

    def progress(
        self, lease: Lease, turn_id: str, note: dict[str, Any] | None = None, *, lease_seconds: float | None = None
    ) -> Lease:
        """Record that a turn has made progress, with a note about it, and extend the lease if its length is given.

        If the node dies, the messages of a turn with progress wait again without counting an attempt.
        """
        text = optional_payload(note, "note")
        seconds = None if lease_seconds is None else require_lease_seconds(lease_seconds)
        require_lease(lease)

        def work(tx: Transaction) -> Lease:
            queue, _ = lock_for_lease(tx, lease, NOTHING)
            queue.check(lease)
            _require_running(queue, turn_id)
            tx.send(_PROGRESS, turn=turn_id, now=queue.now, note=text)
            if seconds is not None:
                queue.lease_until = queue.now + seconds
                queue.save(tx)
            return queue.lease

        return self._engine.write(work)

    def finish(
        self,
        lease: Lease,
        turn_id: str,
        *,
        intents: Sequence[Intent] = (),
        lane: LaneFields | None = None,
        keep_lease: bool = False,
        now: float | None = None,
    ) -> Finished:
        """End a turn: its messages are done, the lane is touched and changed, and the replies are in the outbox.

        All of that is one transaction, which also releases the lease unless `keep_lease`. Repeating the call for a turn
        that has finished changes nothing.
        """
        touched = touched_fields(self._clock() if now is None else require_number(now, "now"))
        fields = encode_fields({**touched, **(lane or {})})

        def end(tx: Transaction, queue: QueueRow, _: Sequence[Values]) -> tuple[int, ...]:
            end_messages(tx, queue.lane_id, turn_id, "done", None, queue.now)
            touch_lane(tx, queue.lane_id, fields)
            return ()

        return self._end(lease, turn_id, "finished", None, end, intents, keep_lease)

    def fail(
        self,
        lease: Lease,
        turn_id: str,
        reason: str,
        *,
        retry: bool = True,
        delay_seconds: float = 0.0,
        intents: Sequence[Intent] = (),
        keep_lease: bool = False,
    ) -> Finished:
        """End a turn that failed. With `retry` its messages wait again, after a delay; otherwise they have failed.

        A message that was tried three times is dead instead, and waits for an operator.
        """
        why, delay = require_reason(reason), require_lease_seconds(delay_seconds)

        def end(tx: Transaction, queue: QueueRow, rows: Sequence[Values]) -> tuple[int, ...]:
            if not retry:
                end_messages(tx, queue.lane_id, turn_id, "failed", why, queue.now)
                return ()
            dead = tuple(message_id for message_id, attempts, _ in rows if attempts >= MAX_ATTEMPTS)
            again = [row[0] for row in rows if row[0] not in dead]
            give_up_messages(tx, dead, "dead", why, queue.now)
            return_messages(tx, again, why, is_uncharged=False)
            if again:
                queue.add_waiting(len(again), again[0])
            return dead

        return self._end(lease, turn_id, "failed", why, end, intents, keep_lease, delay)

    def discard(
        self,
        lease: Lease,
        turn_id: str,
        reason: str,
        *,
        intents: Sequence[Intent] = (),
        keep_lease: bool = False,
    ) -> Finished:
        """End a turn whose messages are not wanted any more."""
        why = require_reason(reason)

        def end(tx: Transaction, queue: QueueRow, _: Sequence[Values]) -> tuple[int, ...]:
            end_messages(tx, queue.lane_id, turn_id, "discarded", why, queue.now)
            return ()

        return self._end(lease, turn_id, "discarded", why, end, intents, keep_lease)

    def park(
        self,
        lease: Lease,
        turn_id: str,
        reason: str,
        *,
        intents: Sequence[Intent] = (),
        keep_lease: bool = False,
    ) -> Finished:
        """End a turn whose messages wait for an operator; the lane continues with its other messages."""
        why = require_reason(reason)

        def end(tx: Transaction, queue: QueueRow, _: Sequence[Values]) -> tuple[int, ...]:
            end_messages(tx, queue.lane_id, turn_id, "parked", why, queue.now, is_kept=True)
            return ()

        return self._end(lease, turn_id, "parked", why, end, intents, keep_lease)

    def interrupt(
        self,
        lease: Lease,
        turn_id: str,
        *,
        reason: str | None = None,
        intents: Sequence[Intent] = (),
        keep_lease: bool = True,
    ) -> Finished:
        """End a turn whose messages wait again in their old place, as if it had not been started.

        Repeating the call for a turn that was interrupted changes nothing.
        """
        why = None if reason is None else require_reason(reason)

        def end(tx: Transaction, queue: QueueRow, rows: Sequence[Values]) -> tuple[int, ...]:
            again = [row[0] for row in rows]
            return_messages(tx, again, why, is_uncharged=True)
            if again:
                queue.add_waiting(len(again), again[0])
            return ()

        return self._end(lease, turn_id, "interrupted", why, end, intents, keep_lease)

    def settle(
        self,
        lease: Lease,
        message_ids: Sequence[int],
        *,
        state: str = "done",
        reason: str | None = None,
        intents: Sequence[Intent] = (),
    ) -> None:
        """End waiting messages of a leased lane that need no turn, such as commands."""
        if state not in END_STATES:
            raise InvalidValue(f"state must be one of {', '.join(END_STATES)}, not {state!r}")
        why = None if reason is None else require_reason(reason)
        drafts = draft_intents(intents, lease.session_key)

        def end(tx: Transaction, queue: QueueRow, ids: Sequence[int]) -> str:
            listed, values = placeholders("id", ids)
            tx.send(_SETTLE.format(listed=listed), lane=queue.lane_id, state=state, reason=why, now=queue.now, **values)
            add_intents(tx, drafts, None, queue.now)
            return ""

        self._take(lease, message_ids, end, None)

    def watch(self, node: str) -> LaneWatch:
        """Return an object that waits until there is work for a node; close it after use."""
        from hermes.state.lanes.queue.watch import LaneWatch

        return LaneWatch(self._engine, require_identifier(node, "node"), self.peek)

    def _take(
        self,
        lease: Lease,
        message_ids: Sequence[int],
        move: Callable[[Transaction, QueueRow, Sequence[int]], str],
        turn_id: str | None,
    ) -> str:
        """Move waiting messages out of the queue of a leased lane, into the turn with this id or into none."""
        ids = require_ids(message_ids)
        require_lease(lease)
        if not ids:
            raise InvalidValue("message_ids must not be empty")
        listed, values = placeholders("id", ids)

        def work(tx: Transaction) -> str:
            queue, rows = lock_for_lease(tx, lease, _WAITING.format(listed=listed), **values)
            queue.check(lease)
            if turn_id is not None:
                _require_running(queue, turn_id)
            elif move is start_turn and queue.turn_id is not None:
                raise Conflict(f"a turn runs in {lease.session_key!r} already", hint="finish it first, or join it")
            if len(rows) != len(ids):
                raise Conflict(f"some of the messages {ids} do not wait in {lease.session_key!r}")
            result = move(tx, queue, ids)
            queue.remove_waiting(tx, ids)
            queue.save(tx)
            return result

        return self._engine.write(work)

    def _end(
        self,
        lease: Lease,
        turn_id: str,
        state: str,
        reason: str | None,
        end: Callable[[Transaction, QueueRow, Sequence[Values]], tuple[int, ...]],
        intents: Sequence[Intent],
        keep_lease: bool,
        delay_s: float = 0.0,
    ) -> Finished:
        """End a turn in one transaction; `end` moves its messages, whose ids, attempts and starts it gets."""
        require_lease(lease)
        require_identifier(turn_id, "turn_id")
        drafts: list[IntentDraft] = draft_intents(intents, lease.session_key)

        def work(tx: Transaction) -> Finished:
            queue, rows = lock_for_lease(tx, lease, TURN_OF_LANE, turn=turn_id)
            turn = turn_row(rows[0][:TURN_WIDTH]) if rows else None
            if turn is not None and turn["token"] == lease.token and turn["state"] == state:
                # The result of an earlier call was lost.
                is_kept = queue.lease_holder == lease.node and queue.lease_token == lease.token
                return Finished(queue.waiting_count, queue.lease if is_kept else None)
            queue.check(lease)
            _require_running(queue, turn_id)
            dead = end(tx, queue, [row[TURN_WIDTH:] for row in rows if row[TURN_WIDTH] is not None])
            end_turn(tx, queue.lane_id, turn_id, state, reason, queue.now)
            add_intents(tx, drafts, turn_id, queue.now)
            queue.turn_id = None
            if not keep_lease:
                queue.free(delay_s)
            queue.save(tx)
            if state == "interrupted" and not keep_lease:
                queue.notify(tx)
            return Finished(queue.waiting_count, queue.lease if keep_lease else None, dead)

        return self._engine.write(work)


def _require_running(queue: QueueRow, turn_id: str) -> None:
    if queue.turn_id != turn_id:
        raise Conflict(f"the turn {turn_id!r} does not run in {queue.session_key!r}")
