"""Leases: one node at a time works on a lane, and the lane of a dead one passes to another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from hermes.state.engine import Capability, Reading, Transaction
from hermes.state.lanes.identity import require_name, short_form
from hermes.state.lanes.queue.claiming import OPEN, RUNNING, Claiming
from hermes.state.lanes.queue.message_rows import end_turn, return_messages
from hermes.state.lanes.queue.queue_row import (
    MAX_LEASE_S,
    NOTHING,
    QueueRow,
    add_queue,
    lock_for_lease,
    lock_query,
    lock_queue,
    require_lease,
    require_lease_seconds,
    require_writable,
)
from hermes.state.lanes.types import Claim, Lease, Watermark
from hermes.state.operations import Operations, chunks, placeholders
from hermes.state.rows import decode_text, require_identifier

if TYPE_CHECKING:
    from hermes.state.lanes.types import Choose, InboxRow

LEASE_S = 60.0
MOST_MESSAGES = 32
TRIES = 16
"""How many lanes without work a claim clears before it returns without a lane."""
ENDED_FIRST = 16
"""Every claim of this number looks for ended leases first, so that ready lanes do not keep them waiting."""

_READY = "ready_id > 0 ORDER BY ready_id LIMIT 1"
_ENDED = "lease_until > 0 AND lease_until <= :now ORDER BY lease_until LIMIT 1"
_TOO_LATE = "lease_until > :latest ORDER BY lease_until DESC LIMIT 1"
_PEEK = """SELECT (SELECT MAX(id) FROM inbox), (SELECT MIN(ready_id) FROM lane_queues WHERE ready_id > 0),
                  (SELECT MIN(lease_until) FROM lane_queues WHERE lease_until > 0),
                  (SELECT MAX(lease_until) FROM lane_queues), {now}"""
_LEASED_BY = """SELECT lane_id FROM lane_queues
                WHERE lease_until > 0 AND lease_until > {now} AND lease_holder = :holder"""
_END_LEASES = """UPDATE lane_queues SET lease_until = {now}
                 WHERE lane_id IN ({listed}) AND lease_until > {now} AND lease_holder = :holder"""
_WAITING_OF = """SELECT lane_id, session_key, waiting_count FROM lane_queues
                 WHERE lease_until > 0 AND lease_holder = :holder AND waiting_count > 0"""

_BUSY = "SELECT lane_id, session_key FROM lane_queues WHERE {} > 0"

_claims = count()


class Leases(Operations):
    """Operations on the leases of lanes."""

    def claim_next(
        self,
        node: str,
        lease_seconds: float = LEASE_S,
        *,
        choose: Choose | None = None,
        limit: int = MOST_MESSAGES,
    ) -> Claim | None:
        """Lease the lane with the oldest waiting message, or one whose lease has ended; None if there is none.

        With `choose`, a turn with the chosen messages starts in the same transaction.
        """
        claiming = Claiming(node, lease_seconds, choose, limit)
        require_writable(self._engine)
        is_ended_first = next(_claims) % ENDED_FIRST == 0
        claim = self._claim_ended(claiming) if is_ended_first else None
        claim = claim or self._claim_ready(claiming)
        return claim or (None if is_ended_first else self._claim_ended(claiming))

    def acquire(
        self,
        key: str,
        node: str,
        lease_seconds: float = LEASE_S,
        *,
        choose: Choose | None = None,
        limit: int = MOST_MESSAGES,
    ) -> Claim | None:
        """Lease a lane, also one without messages; None while a node has it."""
        claiming, lane_id = Claiming(node, lease_seconds, choose, limit), short_form(require_name(key, "key"))

        def work(tx: Transaction) -> Claim | None:
            queue, rows = lock_queue(tx, lane_id, OPEN, most=claiming.limit + 1)
            if queue is None:
                add_queue(tx, key)
                queue, rows = lock_queue(tx, lane_id, OPEN, most=claiming.limit + 1)
            if queue is None or queue.is_leased:
                return None
            return claiming.take(tx, queue, rows)

        return self._engine.write(work)

    def renew(self, lease: Lease, lease_seconds: float = LEASE_S) -> Lease:
        """Extend a lease; raise `StaleLease` if another node has it."""
        require_lease(lease)
        seconds = require_lease_seconds(lease_seconds)

        def work(tx: Transaction) -> Lease:
            queue, _ = lock_for_lease(tx, lease, NOTHING)
            queue.check(lease)
            queue.lease_until = queue.now + seconds
            queue.save(tx)
            return queue.lease

        return self._engine.write(work)

    def release(self, lease: Lease) -> int:
        """Give a lane back and return how many messages wait in it; other nodes may take it then.

        The messages of a turn that still runs wait again, as if the turn had not been started. Raise `StaleLease` if
        another node has the lease.
        """
        require_lease(lease)

        def work(tx: Transaction) -> int:
            queue, _ = lock_for_lease(tx, lease, NOTHING)
            queue.check(lease)
            if queue.turn_id is not None:
                _interrupt(tx, queue, queue.turn_id)
            queue.free()
            queue.save(tx)
            queue.notify(tx)
            return queue.waiting_count

        return self._engine.write(work)

    def end_leases(self, holder: str) -> int:
        """End the leases of a node that is known to be dead, so that other nodes take its lanes; return how many.

        This writes nothing if the node has no lanes.
        """
        values = {"holder": require_identifier(holder, "holder")}
        require_writable(self._engine)
        leased: list[str] = self._engine.read(
            lambda tx: sorted(row[0] for row in tx.rows(_LEASED_BY.format(now=tx.dialect.now), **values))
        )
        return sum(self._engine.write(partial(_end_leases, lane_ids=some, values=values)) for some in chunks(leased))

    def waiting_of(self, node: str) -> dict[str, int]:
        """Return the lanes of a node in which messages wait, with their number; this reads only leased lanes."""
        holder = require_identifier(node, "node")
        rows = self._engine.read(lambda tx: tx.rows(_WAITING_OF, holder=holder))
        return {str(lane_id if key is None else decode_text(key)): int(waiting) for lane_id, key, waiting in rows}

    def busy_lanes(self, prefix: str) -> set[str]:
        """Return the lanes whose keys begin like this and that have work; this reads only lanes with work."""
        require_name(prefix, "prefix")

        def work(tx: Reading) -> set[str]:
            rows = [tuple(row) for each in ("ready_id", "lease_until") for row in tx.rows(_BUSY.format(each))]
            keys = {str(lane_id if key is None else decode_text(key)) for lane_id, key in rows}
            return {each for each in keys if each.startswith(prefix)}

        return self._engine.read(work)

    def peek(self) -> Watermark:
        """Return what there is to do; this reads the ends of three indexes and nothing else."""
        return self._engine.read(_peek)

    def _claim_ready(self, claiming: Claiming) -> Claim | None:
        """Lease the lane with the oldest waiting message."""
        is_server = Capability.SERVER in self._engine.capabilities
        for _ in range(TRIES):
            # A write to a file waits for other writers, even if there is nothing to do; a read does not.
            if not is_server and not self._engine.read(_peek).ready_id:
                return None
            found = self._claim(claiming, _READY, {})
            if found is None or found.claim is not None:
                return None if found is None else found.claim
        return None

    def _claim_ended(self, claiming: Claiming) -> Claim | None:
        """Lease a lane whose lease has ended, if it has work."""
        for _ in range(TRIES):
            seen = self._engine.read(_peek)
            latest = seen.now + MAX_LEASE_S
            if 0 < seen.first_lease_until <= seen.now:
                found = self._claim(claiming, _ENDED, {"now": seen.now})
            elif seen.last_lease_until > latest:
                found = self._claim(claiming, _TOO_LATE, {"latest": latest})
            else:
                return None
            if found is None or found.claim is not None:
                return None if found is None else found.claim
        return None

    def _claim(self, claiming: Claiming, condition: str, values: dict[str, Any]) -> _Found | None:
        def work(tx: Transaction) -> _Found | None:
            lock = lock_query(tx.dialect, condition, tx.dialect.skip_locked)
            held, rows = tx.lock_and_read(lock, OPEN, most=claiming.limit + 1, **values)
            if held is None:
                return None
            queue = QueueRow(*held)
            # Its node may have renewed the lease meanwhile.
            return _Found(None if queue.is_leased else claiming.take(tx, queue, rows, is_work_required=True))

        return self._engine.write(work)


class _Found:
    """A lane that was ready or whose lease had ended, and the claim, unless the lane had no work."""

    __slots__ = ("claim",)

    def __init__(self, claim: Claim | None) -> None:
        self.claim = claim


def _interrupt(tx: Transaction, queue: QueueRow, turn_id: str) -> None:
    """End a turn that its own node gives up; its messages wait again, and the attempt does not count."""
    return_messages(tx, [row[0] for row in tx.rows(RUNNING, lane=queue.lane_id)], None, is_uncharged=True)
    end_turn(tx, queue.lane_id, turn_id, "interrupted", None, queue.now)
    queue.recount(tx)


def _end_leases(tx: Transaction, lane_ids: Sequence[str], values: dict[str, Any]) -> int:
    """End leases that have not ended yet, and tell listening processes."""
    listed, ids = placeholders("lane", lane_ids)
    ended = tx.run(_END_LEASES.format(now=tx.dialect.now, listed=listed), **values, **ids)
    if ended and tx.dialect.notify_lanes:
        tx.send(tx.dialect.notify_lanes, holder="")
    return ended


def _peek(tx: Reading) -> Watermark:
    newest, ready, first, last, now = tx.rows(_PEEK.format(now=tx.dialect.now))[0]
    return Watermark(int(newest or 0), int(ready or 0), float(first or 0), float(last or 0), float(now))


def turn_of_one(messages: Sequence[InboxRow]) -> Sequence[int]:
    """Choose the oldest message: every message has a turn of its own."""
    return [messages[0]["id"]] if messages else []


def turn_of_normal(messages: Sequence[InboxRow]) -> Sequence[int]:
    """Choose the oldest message and, if it is a normal one, the normal ones that follow it directly."""
    chosen = list(turn_of_one(messages))
    if chosen and messages[0]["kind"] == "normal":
        for each in messages[1:]:
            if each["kind"] != "normal":
                break
            chosen.append(each["id"])
    return chosen
