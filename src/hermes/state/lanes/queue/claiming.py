"""Claiming a lane: lease it, recover the turn of the node before, and start a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.errors import InvalidValue
from hermes.state.engine import Reading, Transaction, Values
from hermes.state.lanes.identity import new_uid
from hermes.state.lanes.queue.message_rows import (
    INBOX,
    MAX_ATTEMPTS,
    MAX_STARTS,
    TURN,
    end_turn,
    give_up_messages,
    inbox_row,
    require_ids,
    return_messages,
    turn_row,
)
from hermes.state.lanes.queue.queue_row import QueueRow, require_lease_seconds
from hermes.state.lanes.types import Claim
from hermes.state.operations import placeholders
from hermes.state.rows import require_identifier, require_integer

if TYPE_CHECKING:
    from hermes.state.lanes.types import Choose, InboxRow, TurnRow

OPEN = f"""SELECT {INBOX} FROM inbox WHERE lane_id = :locked AND is_open = 1 AND state <> 'held'
           ORDER BY id LIMIT :most"""
"""The messages of the locked lane that wait or run, oldest first."""
RUNNING = """SELECT id, attempts, starts FROM inbox WHERE lane_id = :lane AND is_open = 1 AND state = 'running'
              ORDER BY id"""
"""The messages of the turn that runs in a lane."""
_START = """UPDATE inbox SET state = 'running', attempts = attempts + 1, starts = starts + 1, turn_id = :turn,
                started_at = :now WHERE lane_id = :lane AND is_open = 1 AND state = 'accepted' AND id IN ({listed})"""
_ADD_TURN = """INSERT INTO turns (turn_id, lane_id, session_key, session_id, node, token, state, started_at)
               SELECT :turn, q.lane_id, q.session_key, (SELECT l.session_id FROM lanes l WHERE l.id = q.lane_id),
                      :node, :token, 'running', :now FROM lane_queues q WHERE q.lane_id = :lane"""
_TURN = f"SELECT {TURN} FROM turns WHERE turn_id = :turn"


class Claiming:
    """What a node wants to claim."""

    def __init__(self, node: str, lease_seconds: float, choose: Choose | None, limit: int) -> None:
        self.node = require_identifier(node, "node")
        self.seconds = require_lease_seconds(lease_seconds)
        self.limit = require_integer(limit, "limit")
        if self.limit < 1:
            raise InvalidValue(f"limit must be at least 1, not {limit}")
        if choose is not None and not callable(choose):
            raise InvalidValue(f"choose must be a function, not {type(choose).__name__}")
        self.choose = choose

    def take(
        self, tx: Transaction, queue: QueueRow, rows: Sequence[Values], *, is_work_required: bool = False
    ) -> Claim | None:
        """Lease a locked lane; with `is_work_required`, free it and return None if nothing waits in it."""
        lost: TurnRow | None = None
        dead: tuple[InboxRow, ...] = ()
        messages = [inbox_row(row) for row in rows]
        if queue.turn_id is not None or any(each["state"] == "running" for each in messages):
            lost, dead = _recover(tx, queue)
            messages = [inbox_row(row) for row in tx.rows(OPEN, locked=queue.lane_id, most=self.limit + 1)]
        if len(messages) <= self.limit:
            queue.set_waiting(len(messages), messages[0]["id"] if messages else None)
        if is_work_required and not messages and not dead:
            queue.free()
            queue.save(tx)
            return None
        queue.lease_to(self.node, self.seconds)
        waiting = messages[: self.limit]
        chosen = [] if self.choose is None else require_ids(self.choose(waiting), "the result of choose")
        turn_id = None
        started = [each for each in waiting if each["id"] in chosen]
        if chosen:
            if len(started) != len(chosen):
                raise InvalidValue("choose must return ids of the given messages")
            turn_id = start_turn(tx, queue, chosen)
            rest = [each for each in messages if each["id"] not in chosen]
            queue.set_waiting(queue.waiting_count - len(chosen), rest[0]["id"] if rest else None)
        queue.save(tx)
        return Claim(
            lease=queue.lease,
            messages=tuple(each for each in waiting if each["id"] not in chosen),
            waiting=queue.waiting_count,
            turn_id=turn_id,
            started=tuple(_as_started(each, turn_id, queue.now) for each in started),
            lost=lost,
            dead=dead,
        )


def start_turn(tx: Transaction, queue: QueueRow, message_ids: Sequence[int]) -> str:
    """Start a turn with waiting messages of a leased lane; the caller counts the rest and saves the row."""
    turn_id = new_uid()
    run_messages(tx, queue, turn_id, message_ids)
    tx.send(
        _ADD_TURN, turn=turn_id, lane=queue.lane_id, node=queue.lease_holder, token=queue.lease_token, now=queue.now
    )
    queue.turn_id = turn_id
    return turn_id


def run_messages(tx: Transaction, queue: QueueRow, turn_id: str, message_ids: Sequence[int]) -> None:
    """Move waiting messages into a turn."""
    listed, values = placeholders("id", message_ids)
    tx.send(_START.format(listed=listed), lane=queue.lane_id, turn=turn_id, now=queue.now, **values)


def _as_started(row: InboxRow, turn_id: str | None, now: float) -> InboxRow:
    return {
        **row,
        "state": "running",
        "attempts": row["attempts"] + 1,
        "starts": row["starts"] + 1,
        "turn_id": turn_id,
        "started_at": now,
    }


def _recover(tx: Transaction, queue: QueueRow) -> tuple[TurnRow | None, tuple[InboxRow, ...]]:
    """End the turn of a node that lost its lease; its messages wait again, unless they were tried too often."""
    row = None if queue.turn_id is None else tx.row(_TURN, turn=queue.turn_id)
    lost = None if row is None else turn_row(row)
    has_progress = lost is not None and lost["progress"] > 0
    reason = f"node {queue.lease_holder if lost is None else lost['node']} did not finish the turn"
    again, dead, parked = [], [], []
    for message_id, attempts, starts in tx.rows(RUNNING, lane=queue.lane_id):
        if not has_progress and attempts >= MAX_ATTEMPTS:
            dead.append(message_id)
        elif starts >= MAX_STARTS:
            parked.append(message_id)
        else:
            again.append(message_id)
    return_messages(tx, again, reason, is_uncharged=has_progress)
    give_up_messages(tx, dead, "dead", f"{reason}, {MAX_ATTEMPTS} times", queue.now)
    give_up_messages(tx, parked, "parked", f"{reason}, {MAX_STARTS} times", queue.now)
    if queue.turn_id is not None:
        end_turn(tx, queue.lane_id, queue.turn_id, "lost", reason, queue.now)
    queue.turn_id = None
    queue.recount(tx)
    return lost, _read_messages(tx, [*dead, *parked])


def _read_messages(tx: Reading, message_ids: Sequence[int]) -> tuple[InboxRow, ...]:
    if not message_ids:
        return ()
    listed, values = placeholders("id", message_ids)
    return tuple(
        inbox_row(row) for row in tx.rows(f"SELECT {INBOX} FROM inbox WHERE id IN ({listed}) ORDER BY id", **values)
    )
