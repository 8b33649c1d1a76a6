"""Holding messages: they stay in their lane, but no node works on them until they are let go."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.state.engine import Transaction
from hermes.state.lanes.identity import require_reason
from hermes.state.lanes.queue.message_rows import kind_condition
from hermes.state.lanes.queue.queue_row import NOTHING, lock_for_lease, require_lease
from hermes.state.lanes.types import Lease
from hermes.state.operations import Operations

_MOVE = """UPDATE inbox SET state = :after, reason = :reason
           WHERE lane_id = :lane AND is_open = 1 AND state = :before {condition}"""


class Holding(Operations):
    """Operations on messages that a node holds back."""

    def hold(self, lease: Lease, *, kinds: Sequence[str] | None = ("queue",), reason: str) -> int:
        """Hold the waiting messages of a leased lane, of some kinds or all; return how many.

        A held message does not count as waiting, and no node claims a lane because of it. Raise `StaleLease` if
        another node has the lease.
        """
        return self._move(lease, "accepted", "held", require_reason(reason), kinds)

    def unhold(self, lease: Lease) -> int:
        """Let the held messages of a leased lane wait again, in their old order; return how many.

        Raise `StaleLease` if another node has the lease.
        """
        return self._move(lease, "held", "accepted", None, None)

    def _move(self, lease: Lease, before: str, after: str, reason: str | None, kinds: Sequence[str] | None) -> int:
        require_lease(lease)
        condition, values = kind_condition(kinds)
        sql = _MOVE.format(condition=condition)

        def work(tx: Transaction) -> int:
            queue, _ = lock_for_lease(tx, lease, NOTHING)
            queue.check(lease)
            moved = tx.run(sql, lane=queue.lane_id, before=before, after=after, reason=reason, **values)
            if moved:
                queue.recount(tx)
                queue.save(tx)
            return moved

        return self._engine.write(work)
