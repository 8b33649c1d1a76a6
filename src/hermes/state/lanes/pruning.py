"""Deleting lanes that were not used for a long time, in slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from hermes.state.engine import Engine, Reading, Transaction, Values
from hermes.state.lanes.queue.queue_row import first_token, require_writable
from hermes.state.operations import placeholders
from hermes.state.rows import decode_text

PRUNE_SLICE = 200
TOKEN_MARGIN = 60_000
"""The queue of a lane is deleted only if its token is so much lower than that of a new queue, which is a minute."""

_IS_IDLE = """NOT EXISTS (SELECT 1 FROM lane_queues q
                          WHERE q.lane_id = lanes.id AND (q.waiting_count > 0 OR q.lease_until > 0))
              AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.lane_id = lanes.id AND i.is_open = 1)"""


def prune_lanes(engine: Engine, before: float, skip: Callable[[str], bool] | None) -> int:
    """Delete the lanes that were last active before a time and have nothing to do; return how many."""
    require_writable(engine)
    deleted = 0
    for finalized in (0, 1):
        at, last = -1e308, ""
        while page := engine.read(partial(_read_page, finalized=finalized, before=before, at=at, last=last)):
            last, at = page[-1][0], page[-1][2]
            chosen = [row[0] for row in page if skip is None or not skip(_key_of(row))]
            if chosen:
                deleted += engine.write(partial(_delete, lane_ids=chosen, before=before))
    return deleted


def _key_of(row: Values) -> str:
    return str(row[0] if row[1] is None else decode_text(row[1]))


def _read_page(tx: Reading, finalized: int, before: float, at: float, last: str) -> list[Values]:
    return tx.rows(
        """SELECT id, session_key, updated_at FROM lanes
           WHERE expiry_finalized = :finalized AND updated_at < :before AND updated_at >= :at
             AND (updated_at > :at OR id > :last) AND suspended = 0 ORDER BY updated_at, id LIMIT :most""",
        finalized=finalized,
        before=before,
        at=at,
        last=last,
        most=PRUNE_SLICE,
    )


def _delete(tx: Transaction, lane_ids: Sequence[str], before: float) -> int:
    listed, values = placeholders("id", sorted(lane_ids))
    # Locked first, as in a turn: what the next statements see of these lanes does not change any more.
    if tx.dialect.for_update:
        tx.rows(f"SELECT lane_id FROM lane_queues WHERE lane_id IN ({listed}) {tx.dialect.for_update}", **values)
    count = tx.run(
        f"DELETE FROM lanes WHERE id IN ({listed}) AND updated_at < :before AND suspended = 0 AND {_IS_IDLE}",
        before=before,
        **values,
    )
    # A queue that is made again begins with a token from the time, which must be higher than the old ones.
    tx.run(
        f"""DELETE FROM lane_queues WHERE lane_id IN ({listed}) AND waiting_count = 0 AND lease_until = 0
            AND lease_token < :floor AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.id = lane_queues.lane_id)
            AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.lane_id = lane_queues.lane_id AND i.is_open = 1)""",
        floor=first_token(tx) - TOKEN_MARGIN,
        **values,
    )
    return count
