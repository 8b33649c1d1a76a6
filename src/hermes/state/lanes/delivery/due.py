"""Which messages of the outbox can be taken now, and when the next one can."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from hermes.errors import InvalidValue
from hermes.state.engine import Reading, Transaction, Values
from hermes.state.lanes.delivery.intents import OUTBOX
from hermes.state.lanes.queue.queue_row import MAX_LEASE_S
from hermes.state.operations import placeholders
from hermes.state.rows import require_identifier

SORTED_ID = "id + 0"
"""The id, for an order that no index has: the index of due times has only the messages that are not sent yet."""

# An earlier message of the same lane holds the later ones back if it is due or was tried. One that waits for its first
# time to be sent does not: it may wait for days.
_IS_FREE = """(lane_id = '' OR NOT EXISTS (
                   SELECT 1 FROM outbox e WHERE e.lane_id = outbox.lane_id AND e.due_at > 0 AND e.id < outbox.id
                   AND (e.due_at <= :now OR e.attempts > 0)))"""
_DUE = f"""SELECT {OUTBOX} FROM outbox WHERE due_at > 0 AND due_at <= :now {{condition}} AND {_IS_FREE}
           ORDER BY due_at, id LIMIT :most {{lock}}"""
_NEXT = f"""SELECT due_at FROM outbox WHERE due_at > 0 {{condition}} AND {_IS_FREE}
            ORDER BY due_at, id LIMIT 1"""
# A message that was tried waits for an hour at most, and none is younger than the present: such times were made before
# the clock of the database was set back.
_AHEAD = "due_at > :latest AND (attempts > 0 OR created_at > :now)"
_SET_BACK = f"""UPDATE outbox SET
                    due_at = CASE WHEN attempts = 0 AND due_at > created_at THEN :now + due_at - created_at
                                  ELSE :now END,
                    created_at = CASE WHEN created_at > :now THEN :now ELSE created_at END
                WHERE {_AHEAD}"""


class Choice(NamedTuple):
    """A condition that chooses messages by platform and account, and its values."""

    condition: str
    values: dict[str, Any]


def choose(
    platforms: Collection[str] | None = None, account: str | None = None, excluded: Collection[str] = ()
) -> Choice:
    """Return the choice of some platforms (None: all) without the excluded ones, and of one account (None: all)."""
    listed, values = placeholders("platform", _names(platforms or (), "platforms"))
    left_out, more = placeholders("excluded", _names(excluded, "exclude_platforms"))
    condition = "" if platforms is None else f"AND platform IN ({listed})"
    if excluded:
        condition += f" AND platform NOT IN ({left_out})"
    if account is not None:
        condition += " AND account = :account"
    return Choice(condition, {**values, **more, "account": account})


def read_due(tx: Transaction, choice: Choice, now: float, limit: int) -> list[Values]:
    """Return and lock messages that can be taken; those that another transaction has locked are left out."""
    sql = _DUE.format(condition=choice.condition, lock=tx.dialect.skip_locked)
    return tx.rows(sql, now=now, most=limit, **choice.values)


def seconds_until_due(tx: Reading, choice: Choice) -> float | None:
    """Return how long it takes until the next message can be taken: 0 if one can be taken now, None without any."""
    first, last, now = due_times(tx)
    if not first:
        return None
    latest = now + MAX_LEASE_S
    # `set_back` repairs such times.
    if last > latest and tx.row(f"SELECT 1 FROM outbox WHERE {_AHEAD} LIMIT 1", now=now, latest=latest) is not None:
        return 0.0
    due_at = tx.value(_NEXT.format(condition=choice.condition), now=now, **choice.values)
    return None if due_at is None else max(0.0, float(due_at) - now)


def set_back(tx: Transaction) -> float:
    """Repair times that were made before the clock of the database was set back; return the present time."""
    _, last, now = due_times(tx)
    if last > now + MAX_LEASE_S:
        tx.send(_SET_BACK, now=now, latest=now + MAX_LEASE_S)
    return now


def due_times(tx: Reading) -> tuple[float, float, float]:
    """Return the first and the last time at which a message is due, 0 for none, and the time of the database."""
    first, last, now = tx.rows(
        f"""SELECT (SELECT MIN(due_at) FROM outbox WHERE due_at > 0), (SELECT MAX(due_at) FROM outbox),
                   {tx.dialect.now}"""
    )[0]
    return float(first or 0), float(last or 0), float(now)


def _names(value: Any, what: str) -> Sequence[str]:
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidValue(f"{what} must be a list of platforms, not {value!r}")
    return [require_identifier(each, what) for each in value]
