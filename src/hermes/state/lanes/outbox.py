"""The outbox: messages to platforms, stored before they are sent, and sent in order in each lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from hermes.errors import InvalidValue, StaleLease
from hermes.state.engine import Capability, Reading, Transaction, Values
from hermes.state.lanes.identity import optional_payload, require_name, require_reason, short_form
from hermes.state.lanes.intents import OUTBOX, add_intents, draft_intent, outbox_row
from hermes.state.lanes.queue.queue_row import MAX_LEASE_S, NOTHING, lock_queue, require_lease_seconds, require_writable
from hermes.state.lanes.retention import expire_dead, sweep_rows
from hermes.state.lanes.types import DeliveryState
from hermes.state.operations import Operations, row_limit
from hermes.state.rows import optional_integer, require_identifier, require_integer

if TYPE_CHECKING:
    from hermes.state.lanes.types import Intent, OutboxRow

STATES: tuple[str, ...] = get_args(DeliveryState)
SEND_S = 60.0
MOST_ATTEMPTS = 5

# An earlier message of the same lane that is not sent yet holds the later ones back.
_DUE = f"""SELECT {OUTBOX} FROM outbox WHERE due_at > 0 AND due_at <= :now {{condition}}
           AND (lane_id = '' OR NOT EXISTS (
               SELECT 1 FROM outbox e WHERE e.lane_id = outbox.lane_id AND e.due_at > 0 AND e.id < outbox.id))
           ORDER BY due_at, id LIMIT :most {{lock}}"""
_SEND = """UPDATE outbox SET state = 'sending', attempts = attempts + 1, holder = :node, due_at = :until
           WHERE id = :id"""
# A message that was tried waits for an hour at most, and none is younger than the present: such times were made before
# the clock of the database was set back.
_AHEAD = "due_at > :latest AND (attempts > 0 OR created_at > :now)"
_SET_BACK = f"""UPDATE outbox SET
                    due_at = CASE WHEN attempts = 0 AND due_at > created_at THEN :now + due_at - created_at
                                  ELSE :now END,
                    created_at = CASE WHEN created_at > :now THEN :now ELSE created_at END
                WHERE {_AHEAD}"""
_END = """UPDATE outbox SET state = :state, reason = :reason, due_at = :due_at, finished_at = :finished_at,
              dead_at = :dead_at, receipt = COALESCE(:receipt, receipt), holder = NULL {more}
          WHERE id = :id AND state = 'sending' AND attempts = :attempt"""


class Outbox(Operations):
    """Operations on messages to platforms."""

    def intend(self, intent: Intent) -> OutboxRow:
        """Store a message that is to be sent and return it; a repeated key returns the stored message.

        A draft is not sent; it is completed when its key is intended again without `draft`.
        """
        draft = draft_intent(intent)
        ref, lane_id = draft.values["key_ref"], draft.values["lane_id"]

        def work(tx: Transaction) -> OutboxRow:
            if lane_id:
                lock_queue(tx, lane_id, NOTHING)  # so that the ids of a lane are in the order of their commits
            add_intents(tx, [draft], None, _now(tx))
            row = tx.row(f"SELECT {OUTBOX} FROM outbox WHERE key_ref = :ref", ref=ref)
            assert row is not None
            return outbox_row(row)

        return self._engine.write(work)

    def sending(
        self,
        node: str,
        lease_seconds: float = SEND_S,
        *,
        platform: str | None = None,
        account: str | None = None,
        limit: int = 16,
    ) -> list[OutboxRow]:
        """Take messages that are due, of all platforms and accounts or one, and mark them as being sent by a node.

        The messages of a lane are returned one at a time, in order. `attempts` of a row is the number that the calls
        about its result need. With `was_sending`, an earlier node did not report its result, so the platform may have
        the message already. A message whose time has run out is not returned; `dead` lists it.
        """
        require_identifier(node, "node")
        require_writable(self._engine)
        seconds, most = require_lease_seconds(lease_seconds), require_integer(limit, "limit")
        condition = ("AND platform = :platform" if platform is not None else "") + (
            " AND account = :account" if account is not None else ""
        )
        values = {"platform": platform, "account": account, "most": most}

        def work(tx: Transaction) -> list[OutboxRow]:
            _, last, now = _due_times(tx)
            if last > now + MAX_LEASE_S:
                tx.send(_SET_BACK, now=now, latest=now + MAX_LEASE_S)
            rows = tx.rows(_DUE.format(condition=condition, lock=tx.dialect.skip_locked), now=now, **values)
            taken: list[OutboxRow] = []
            for row in map(outbox_row, rows):
                if row["expires_at"] is not None and row["expires_at"] <= now:
                    _let_expire(tx, row, now)
                    continue
                tx.send(_SEND, id=row["id"], node=node, until=now + seconds)
                was_sending = row["state"] == "sending"
                attempts = row["attempts"] + 1
                sent: OutboxRow = {**row, "state": "sending", "attempts": attempts, "holder": node}
                taken.append({**sent, "due_at": now + seconds, "was_sending": was_sending})
            return taken

        is_server = Capability.SERVER in self._engine.capabilities
        return self._engine.write(work) if is_server or self._engine.read(_is_due) else []

    def sent(self, message_id: int, attempt: int, receipt: dict[str, Any] | None = None) -> None:
        """Record that the platform has a message, and what it returned; raise `StaleLease` if another node sends it."""
        self._end(message_id, attempt, "sent", None, receipt)

    def unknown(self, message_id: int, attempt: int, reason: str) -> None:
        """Record that the platform may have a message; it waits for an operator."""
        self._end(message_id, attempt, "unknown", require_reason(reason))

    def failed(
        self,
        message_id: int,
        attempt: int,
        reason: str,
        *,
        delay_seconds: float = 0.0,
        max_attempts: int = MOST_ATTEMPTS,
    ) -> bool:
        """Record that the platform did not get a message; return whether it is sent again, after a delay."""
        delay = require_lease_seconds(delay_seconds)
        is_last = require_integer(attempt, "attempt") >= require_integer(max_attempts, "max_attempts")
        self._end(message_id, attempt, "dead" if is_last else "pending", require_reason(reason), delay_s=delay)
        return not is_last

    def preview(self, message_id: int, receipt: dict[str, Any]) -> bool:
        """Store what the platform returned for a preview of a message that is not sent yet."""
        number, text = require_integer(message_id, "message_id"), optional_payload(receipt, "receipt")
        sql = "UPDATE outbox SET receipt = :receipt WHERE id = :id AND state IN ('draft', 'pending', 'sending')"
        return self._engine.write(lambda tx: tx.run(sql, id=number, receipt=text) == 1)

    def expire(self, message_id: int) -> bool:
        """Give up a message that is a draft or waits to be sent; `dead` lists it."""
        number = require_integer(message_id, "message_id")
        sql = """UPDATE outbox SET state = 'expired', due_at = 0, finished_at = :now, dead_at = :now
                 WHERE id = :id AND state IN ('draft', 'pending')"""
        return self._engine.write(lambda tx: tx.run(sql, id=number, now=_now(tx)) == 1)

    def get(self, message_id: int) -> OutboxRow | None:
        """Return a message by its id."""
        number = require_integer(message_id, "message_id")
        return self._first(f"SELECT {OUTBOX} FROM outbox WHERE id = :id", id=number)

    def find(self, key: str) -> OutboxRow | None:
        """Return the message with an idempotency key."""
        return self._first(
            f"SELECT {OUTBOX} FROM outbox WHERE key_ref = :ref", ref=short_form(require_name(key, "key"))
        )

    def pending(self, *, after: int | None = None, limit: int | None = 100) -> list[OutboxRow]:
        """Return the messages that wait to be sent or are being sent, by id; `after` is the last one seen."""
        return self._page("due_at > 0", after, limit)

    def dead(self, *, after: int | None = None, limit: int | None = 100) -> list[OutboxRow]:
        """Return the messages that wait for an operator: dead, expired, or not known to be sent."""
        return self._page("dead_at > 0", after, limit)

    def retry(self, message_id: int) -> bool:
        """Let a message that waits for an operator be sent once more; False if it does not wait."""
        number = require_integer(message_id, "message_id")
        sql = """UPDATE outbox SET state = 'pending', due_at = :now, dead_at = 0, finished_at = NULL, expires_at = NULL,
                     reason = NULL WHERE id = :id AND dead_at > 0 AND payload IS NOT NULL"""
        return self._engine.write(lambda tx: tx.run(sql, id=number, now=_now(tx)) == 1)

    def delete(self, message_id: int) -> bool:
        """Give up a message that waits for an operator; its key is still recognized."""
        number = require_integer(message_id, "message_id")
        sql = "UPDATE outbox SET payload = NULL, dead_at = 0 WHERE id = :id AND dead_at > 0"
        return self._engine.write(lambda tx: tx.run(sql, id=number) == 1)

    def expire_dead(self, older_than_s: float) -> int:
        """Give up the messages that have waited for an operator for longer than this; return how many."""
        return expire_dead(self._engine, "outbox", older_than_s)

    def sweep(self, older_than_s: float, *, limit: int = 500) -> int:
        """Remove up to `limit` messages that ended longer ago than this, and return how many."""
        return sweep_rows(self._engine, "outbox", "created_at", older_than_s, limit)

    def _first(self, sql: str, **values: Any) -> OutboxRow | None:
        row = self._engine.read(lambda tx: tx.row(sql, **values))
        return None if row is None else outbox_row(row)

    def _page(self, condition: str, after: int | None, limit: int | None) -> list[OutboxRow]:
        sql = f"SELECT {OUTBOX} FROM outbox WHERE {condition} AND id > :after ORDER BY id LIMIT :most"
        start, most = optional_integer(after, "after") or 0, row_limit(limit)
        rows: Sequence[Values] = self._engine.read(lambda tx: tx.rows(sql, after=start, most=most))
        return [outbox_row(row) for row in rows]

    def _end(
        self,
        message_id: int,
        attempt: int,
        state: str,
        reason: str | None,
        receipt: dict[str, Any] | None = None,
        delay_s: float = 0.0,
    ) -> None:
        number, fence = require_integer(message_id, "message_id"), require_integer(attempt, "attempt")
        text = optional_payload(receipt, "receipt")
        more = ", payload = NULL" if state == "sent" else ""

        def work(tx: Transaction) -> None:
            now = _now(tx)
            is_pending = state == "pending"
            changed = tx.run(
                _END.format(more=more),
                id=number,
                attempt=fence,
                state=state,
                reason=reason,
                receipt=text,
                due_at=now + delay_s if is_pending else 0.0,
                finished_at=None if is_pending else now,
                dead_at=now if state in ("unknown", "dead") else 0.0,
            )
            if not changed:
                _refuse(tx, number, fence, state)

        self._engine.write(work)


def _refuse(tx: Reading, message_id: int, attempt: int, state: str) -> None:
    """Raise unless the result was recorded already, by an earlier call with the same number."""
    row = tx.row("SELECT state, attempts FROM outbox WHERE id = :id", id=message_id)
    if row is None:
        raise InvalidValue(f"there is no message {message_id} in the outbox")
    if tuple(row) != (state, attempt):
        raise StaleLease(f"attempt {attempt} at sending message {message_id} is over", hint="another node sends it")


def _let_expire(tx: Transaction, row: OutboxRow, now: float) -> None:
    """End a message whose time has run out; one that was being sent may have reached the platform."""
    is_unknown = row["state"] == "sending"
    tx.send(
        """UPDATE outbox SET state = :state, reason = :reason, due_at = 0, finished_at = :now, dead_at = :now,
               holder = NULL WHERE id = :id""",
        id=row["id"],
        state="unknown" if is_unknown else "expired",
        reason="its time ran out while it was being sent" if is_unknown else "its time ran out before it was sent",
        now=now,
    )


def _now(tx: Reading) -> float:
    return float(tx.value(f"SELECT {tx.dialect.now}"))


def _due_times(tx: Reading) -> tuple[float, float, float]:
    """Return the first and the last time at which a message is due, 0 for none, and the time of the database."""
    first, last, now = tx.rows(
        f"""SELECT (SELECT MIN(due_at) FROM outbox WHERE due_at > 0), (SELECT MAX(due_at) FROM outbox),
                   {tx.dialect.now}"""
    )[0]
    return float(first or 0), float(last or 0), float(now)


def _is_due(tx: Reading) -> bool:
    first, last, now = _due_times(tx)
    latest = now + MAX_LEASE_S
    if last <= latest:
        return 0 < first <= now
    return first <= now or tx.row(f"SELECT 1 FROM outbox WHERE {_AHEAD} LIMIT 1", now=now, latest=latest) is not None
