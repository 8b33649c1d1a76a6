"""What waits and what runs in all lanes, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hermes.state.engine import Reading
from hermes.state.operations import Operations, read

_WAITING = "SELECT COUNT(*), SUM(waiting_count), MIN(waiting_id) FROM lane_queues WHERE {} > 0 AND waiting_count > 0"
_HOLDERS = """SELECT lease_holder, SUM(CASE WHEN lease_until > :now THEN 1 ELSE 0 END), COUNT(*) FROM lane_queues
              WHERE lease_until > 0 AND lease_holder IS NOT NULL GROUP BY lease_holder"""
_RUNNING = "SELECT COUNT(*) FROM lane_queues WHERE lease_until > 0 AND turn_id IS NOT NULL"
_DEAD = "SELECT state, COUNT(*) FROM {table} WHERE dead_at > 0 GROUP BY state"
_PENDING = "SELECT COUNT(*), MIN(created_at) FROM outbox WHERE due_at > 0"
_HELD = "SELECT COUNT(*) FROM inbox WHERE is_open = 1 AND state = 'held'"


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """The state of all lanes; times are those of the database."""

    now: float
    waiting_lanes: int
    waiting_messages: int
    oldest_waiting_at: float | None
    """When the oldest waiting message was accepted."""
    running_turns: int
    leases: Mapping[str, int]
    """How many lanes each process has."""
    ended_leases: Mapping[str, int]
    """How many lanes each process has lost by not renewing its lease in time; another node takes them next."""
    dead_inbox: Mapping[str, int]
    """Messages from platforms that wait for an operator, by state."""
    dead_outbox: Mapping[str, int]
    """Messages to platforms that wait for an operator, by state."""
    undelivered: int
    """Messages to platforms that are not sent yet."""
    oldest_undelivered_at: float | None


def read_figures(store: Operations) -> LaneFigures:
    """Return the figures of all lanes; this reads only lanes with work and messages that have not ended."""
    return read(store, _figures)


def count_held(store: Operations) -> int:
    """Return how many messages are held; this reads the whole inbox."""
    return int(read(store, lambda tx: tx.value(_HELD)) or 0)


def _figures(tx: Reading) -> LaneFigures:
    now = float(tx.value(f"SELECT {tx.dialect.now}"))
    ready_lanes, ready, first_ready = tx.rows(_WAITING.format("ready_id"))[0]
    leased_lanes, behind, first_behind = tx.rows(_WAITING.format("lease_until"))[0]
    oldest = min((int(each) for each in (first_ready, first_behind) if each), default=0)
    accepted_at = tx.value("SELECT accepted_at FROM inbox WHERE id = :id", id=oldest) if oldest else None
    holders = [(str(name), int(valid or 0), int(all_)) for name, valid, all_ in tx.rows(_HOLDERS, now=now)]
    pending, oldest_pending = tx.rows(_PENDING)[0]
    return LaneFigures(
        now=now,
        waiting_lanes=int(ready_lanes) + int(leased_lanes),
        waiting_messages=int(ready or 0) + int(behind or 0),
        oldest_waiting_at=None if accepted_at is None else float(accepted_at),
        running_turns=int(tx.value(_RUNNING) or 0),
        leases={name: valid for name, valid, _ in holders if valid},
        ended_leases={name: all_ - valid for name, valid, all_ in holders if all_ > valid},
        dead_inbox=_by_state(tx, "inbox"),
        dead_outbox=_by_state(tx, "outbox"),
        undelivered=int(pending),
        oldest_undelivered_at=None if oldest_pending is None else float(oldest_pending),
    )


def _by_state(tx: Reading, table: str) -> dict[str, int]:
    return {str(state): int(count) for state, count in tx.rows(_DEAD.format(table=table))}
