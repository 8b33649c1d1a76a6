"""The outbox: messages to platforms, stored before they are sent, and sent in order in each lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from hermes.errors import InvalidValue, StaleLease
from hermes.state.engine import Capability, Reading, Transaction
from hermes.state.lanes.delivery.due import SORTED_ID, choose, read_due, seconds_until_due, set_back
from hermes.state.lanes.delivery.intents import OUTBOX, add_intents, draft_intent, outbox_row
from hermes.state.lanes.delivery.outbox_lists import OutboxLists
from hermes.state.lanes.identity import optional_payload, require_reason
from hermes.state.lanes.queue.queue_row import NOTHING, lock_queue, require_lease_seconds, require_writable
from hermes.state.lanes.retention import expire_dead, sweep_rows
from hermes.state.lanes.types import DeliveryState
from hermes.state.rows import require_identifier, require_integer

if TYPE_CHECKING:
    from hermes.state.lanes.types import Intent, OutboxRow

STATES: tuple[str, ...] = get_args(DeliveryState)
SEND_S = 60.0
MOST_ATTEMPTS = 5

_SEND = """UPDATE outbox SET state = 'sending', attempts = attempts + 1, holder = :node, due_at = :until
           WHERE id = :id"""
_SENT_BY = "SELECT 1 FROM outbox WHERE due_at > {now} AND state = 'sending' AND holder = :holder LIMIT 1"
_END_LEASES = "UPDATE outbox SET due_at = :now WHERE due_at > :now AND state = 'sending' AND holder = :holder"
_CONFIRM = """UPDATE outbox SET state = 'sent', due_at = 0, finished_at = :now, dead_at = 0, reason = NULL,
                  receipt = COALESCE(:receipt, receipt), holder = NULL, payload = NULL
              WHERE id = :id AND state IN ('pending', 'sending')"""
# A message that a node is sending at the moment is left to that node.
_RUN_OUT = f"""SELECT {OUTBOX} FROM outbox WHERE due_at > 0 AND expires_at <= {{now}}
               AND (state = 'pending' OR due_at <= {{now}}) ORDER BY {SORTED_ID} LIMIT :most {{lock}}"""
_END = """UPDATE outbox SET state = :state, reason = :reason, due_at = :due_at, finished_at = :finished_at,
              dead_at = :dead_at, receipt = COALESCE(:receipt, receipt), holder = NULL {more}
          WHERE id = :id AND state = 'sending' AND attempts = :attempt"""


class Outbox(OutboxLists):
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
        exclude_platforms: Sequence[str] = (),
        limit: int = 16,
    ) -> list[OutboxRow]:
        """Take messages that are due, of all platforms and accounts or some, and mark them as being sent by a node.

        The messages of a lane are returned one at a time, in order. `attempts` of a row is the number that the calls
        about its result need. With `was_sending`, an earlier node did not report its result, so the platform may have
        the message already. A message whose time has run out is not returned; `dead` lists it.
        """
        require_identifier(node, "node")
        require_writable(self._engine)
        seconds, most = require_lease_seconds(lease_seconds), require_integer(limit, "limit")
        choice = choose(None if platform is None else [platform], account, exclude_platforms)

        def work(tx: Transaction) -> list[OutboxRow]:
            now = set_back(tx)
            taken: list[OutboxRow] = []
            for row in map(outbox_row, read_due(tx, choice, now, most)):
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
        # A write to a file waits for other writers, even if there is nothing to do; a read does not.
        if not is_server and self._engine.read(lambda tx: seconds_until_due(tx, choice)) != 0:
            return []
        return self._engine.write(work)

    def end_leases(self, holder: str) -> int:
        """Let others take the messages that a node was sending, because it is known to be dead; return how many.

        They are taken with `was_sending`. This writes nothing if the node was sending none.
        """
        values = {"holder": require_identifier(holder, "holder")}
        require_writable(self._engine)
        if self._engine.read(lambda tx: tx.row(_SENT_BY.format(now=tx.dialect.now), **values)) is None:
            return 0
        return self._engine.write(lambda tx: tx.run(_END_LEASES, now=_now(tx), **values))

    def sent(self, message_id: int, attempt: int, receipt: dict[str, Any] | None = None) -> None:
        """Record that the platform has a message, and what it returned; raise `StaleLease` if another node sends it."""
        self._end(message_id, attempt, "sent", None, receipt)

    def confirm(self, message_id: int, receipt: dict[str, Any] | None = None) -> bool:
        """Record that the platform has a message, whichever node sends it; False if it is unknown or ended otherwise.

        Repeating the call for a message that was sent changes nothing and returns True.
        """
        number, text = require_integer(message_id, "message_id"), optional_payload(receipt, "receipt")

        def work(tx: Transaction) -> bool:
            if tx.run(_CONFIRM, id=number, receipt=text, now=_now(tx)):
                return True
            return bool(tx.value("SELECT state FROM outbox WHERE id = :id", id=number) == "sent")

        return self._engine.write(work)

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

    def expire_due(self, limit: int = 100) -> list[OutboxRow]:
        """End up to `limit` messages whose time has run out, as `sending` does, and return them.

        This writes nothing if there are none.
        """
        most = require_integer(limit, "limit")
        require_writable(self._engine)

        def work(tx: Transaction) -> list[OutboxRow]:
            now = _now(tx)
            rows = tx.rows(_RUN_OUT.format(now=":now", lock=tx.dialect.skip_locked), now=now, most=most)
            return [_let_expire(tx, outbox_row(row), now) for row in rows]

        def has_run_out(tx: Reading) -> bool:
            return tx.row(_RUN_OUT.format(now=tx.dialect.now, lock=""), most=1) is not None

        return self._engine.write(work) if self._engine.read(has_run_out) else []

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


def _let_expire(tx: Transaction, row: OutboxRow, now: float) -> OutboxRow:
    """End a message whose time has run out; one that was being sent may have reached the platform."""
    is_unknown = row["state"] == "sending"
    state: DeliveryState = "unknown" if is_unknown else "expired"
    reason = "its time ran out while it was being sent" if is_unknown else "its time ran out before it was sent"
    tx.send(
        """UPDATE outbox SET state = :state, reason = :reason, due_at = 0, finished_at = :now, dead_at = :now,
               holder = NULL WHERE id = :id""",
        id=row["id"],
        state=state,
        reason=reason,
        now=now,
    )
    ended: OutboxRow = {**row, "state": state, "reason": reason, "holder": None}
    return {**ended, "due_at": 0.0, "finished_at": now}


def _now(tx: Reading) -> float:
    return float(tx.value(f"SELECT {tx.dialect.now}"))
