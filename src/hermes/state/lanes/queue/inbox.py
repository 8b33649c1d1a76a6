"""The inbox: messages from platforms, each stored once before the platform hears that it was received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes.errors import InvalidValue
from hermes.state.engine import Reading, Transaction, Values
from hermes.state.lanes.identity import (
    digest,
    encode_payload,
    new_uid,
    require_name,
    require_reason,
    short_form,
    stored_name,
)
from hermes.state.lanes.queue.message_rows import INBOX, KINDS, inbox_row, kind_condition
from hermes.state.lanes.queue.queue_row import NOTHING, QueueRow, add_queue, lock_queue
from hermes.state.lanes.retention import expire_dead, sweep_rows
from hermes.state.lanes.types import Accepted, MessageKind, QueueTotals
from hermes.state.operations import Operations, insert_into, row_limit
from hermes.state.rows import decode_text, optional_integer, optional_text, require_identifier, require_integer

if TYPE_CHECKING:
    from hermes.state.lanes.types import InboxRow

_COLUMNS = (
    *("uid", "lane_id", "session_key", "kind", "state", "delivery_key", "message_key", "message_ref", "platform"),
    *("account", "chat_id", "message_id", "delivery_id", "accepted_at", "payload"),
)
_INSERT = insert_into("inbox", _COLUMNS)
_KNOWN = f"""SELECT {INBOX} FROM inbox WHERE delivery_key = :delivery_key
             UNION ALL SELECT {INBOX} FROM inbox WHERE message_key = :message_key"""


class Inbox(Operations):
    """Operations on messages from platforms."""

    def accept(
        self,
        key: str,
        payload: dict[str, Any],
        *,
        platform: str,
        chat_id: str | None = None,
        message_id: str | None = None,
        account: str = "",
        delivery_id: str | None = None,
        kind: MessageKind = "normal",
        node: str | None = None,
    ) -> Accepted:
        """Store a message in the queue of a lane, unless it is known, and return which of both.

        It is known if the platform's account has delivered it before: the same delivery id, or the same message in the
        same chat. `node` is the caller's node, which needs no notification about its own lanes.
        """
        if kind not in KINDS:
            raise InvalidValue(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
        row = _new_row(key, payload, platform, account, chat_id, message_id, delivery_id, kind)

        def work(tx: Transaction) -> Accepted:
            queue, known = lock_queue(tx, row["lane_id"], _KNOWN, **row)
            if queue is None:
                known = tx.rows(_KNOWN, **row)
                if not known:
                    add_queue(tx, key)
                    queue, known = lock_queue(tx, row["lane_id"], _KNOWN, **row)
            if known:
                return Accepted("known", _oldest(known), 0 if queue is None else queue.waiting_count)
            assert queue is not None
            return _add(tx, queue, {**row, "accepted_at": queue.now}, node)

        return self._engine.write(work)

    def get(self, message_id: int) -> InboxRow | None:
        """Return a message by its id in the inbox."""
        number = require_integer(message_id, "message_id")
        row = self._engine.read(lambda tx: tx.row(f"SELECT {INBOX} FROM inbox WHERE id = :id", id=number))
        return None if row is None else inbox_row(row)

    def find(self, message_id: str, *, platform: str | None = None, chat_id: str | None = None) -> list[InboxRow]:
        """Return the messages that have this id on their platform, oldest first."""
        ref = short_form(require_name(message_id, "message_id"))
        sql = f"SELECT {INBOX} FROM inbox WHERE message_ref = :ref ORDER BY id"
        rows = [inbox_row(row) for row in self._engine.read(lambda tx: tx.rows(sql, ref=ref))]
        return [row for row in rows if platform in (None, row["platform"]) and chat_id in (None, row["chat_id"])]

    def waiting(self, key: str, *, kinds: Sequence[str] | None = None, limit: int | None = 100) -> list[InboxRow]:
        """Return the messages that wait in a lane, of all kinds or some, oldest first."""
        condition, values = kind_condition(kinds)
        return self._open(key, f"AND state = 'accepted' {condition}", limit, **values)

    def held(self, key: str, *, limit: int | None = 100) -> list[InboxRow]:
        """Return the messages of a lane that are held, oldest first."""
        return self._open(key, "AND state = 'held'", limit)

    def depth(self, key: str) -> int:
        """Return how many messages wait in a lane."""
        lane_id = short_form(require_name(key, "key"))
        sql = "SELECT waiting_count FROM lane_queues WHERE lane_id = :lane"
        return int(self._engine.read(lambda tx: tx.value(sql, lane=lane_id)) or 0)

    def totals(self) -> QueueTotals:
        """Return how many lanes and messages wait, and how many lanes a node has; this reads only those lanes."""
        sql = "SELECT COUNT(*), SUM(waiting_count) FROM lane_queues WHERE {} > 0"

        def work(tx: Reading) -> QueueTotals:
            ready, queued = tx.rows(sql.format("ready_id"))[0]
            leased, behind = tx.rows(sql.format("lease_until"))[0]
            return QueueTotals(int(ready), int(queued or 0) + int(behind or 0), int(leased))

        return self._engine.read(work)

    def discard_waiting(self, key: str, reason: str, *, kinds: Sequence[str] | None = None) -> int:
        """Discard the messages that wait in a lane or are held, of all kinds or some; return how many."""
        lane_id, why = short_form(require_name(key, "key")), require_reason(reason)
        condition, values = kind_condition(kinds)

        def work(tx: Transaction) -> int:
            queue, _ = lock_queue(tx, lane_id, NOTHING)
            if queue is None:
                return 0
            count = tx.run(
                f"""UPDATE inbox SET state = 'discarded', is_open = 0, reason = :reason, finished_at = :now,
                        payload = NULL
                    WHERE lane_id = :lane AND is_open = 1 AND state IN ('accepted', 'held') {condition}""",
                lane=lane_id,
                reason=why,
                now=queue.now,
                **values,
            )
            queue.recount(tx)
            queue.save(tx)
            return count

        return self._engine.write(work)

    def dead(self, *, after: int | None = None, limit: int | None = 100) -> list[InboxRow]:
        """Return the messages that are dead or parked and wait for an operator, by id; `after` is the last one seen."""
        sql = f"SELECT {INBOX} FROM inbox WHERE dead_at > 0 AND id > :after ORDER BY id LIMIT :most"
        start, most = optional_integer(after, "after") or 0, row_limit(limit)
        return [inbox_row(row) for row in self._engine.read(lambda tx: tx.rows(sql, after=start, most=most))]

    def retry(self, message_id: int) -> bool:
        """Let a dead or parked message wait in its lane again, with all its attempts; False if it is not dead."""
        number = require_integer(message_id, "message_id")

        def work(tx: Transaction) -> bool:
            lane = tx.row("SELECT lane_id, session_key FROM inbox WHERE id = :id AND dead_at > 0", id=number)
            if lane is None:
                return False
            queue = lock_or_add_queue(tx, lane[0], lane[1])
            changed = tx.run(
                """UPDATE inbox SET state = 'accepted', is_open = 1, attempts = 0, starts = 0, dead_at = 0,
                       reason = NULL, turn_id = NULL, finished_at = NULL WHERE id = :id AND dead_at > 0""",
                id=number,
            )
            if changed:
                queue.add_waiting(1, number)
                queue.save(tx)
                queue.notify(tx)
            return changed == 1

        return self._engine.write(work)

    def delete(self, message_id: int) -> bool:
        """Give up a dead or parked message; it is still recognized if the platform delivers it again."""
        number = require_integer(message_id, "message_id")
        sql = "UPDATE inbox SET payload = NULL, dead_at = 0 WHERE id = :id AND dead_at > 0"
        return self._engine.write(lambda tx: tx.run(sql, id=number) == 1)

    def expire(self, older_than_s: float) -> int:
        """Give up the dead and parked messages that have been so for longer than this; return how many."""
        return expire_dead(self._engine, "inbox", older_than_s)

    def sweep(self, older_than_s: float, *, limit: int = 500) -> int:
        """Remove up to `limit` messages that ended longer ago than this, and return how many; dead ones stay.

        A message that is removed is not recognized any more if the platform delivers it again.
        """
        return sweep_rows(self._engine, "inbox", "accepted_at", older_than_s, limit)

    def _open(self, key: str, condition: str, limit: int | None, **values: Any) -> list[InboxRow]:
        lane_id, most = short_form(require_name(key, "key")), row_limit(limit)
        sql = f"SELECT {INBOX} FROM inbox WHERE lane_id = :lane AND is_open = 1 {condition} ORDER BY id LIMIT :most"
        return [inbox_row(row) for row in self._engine.read(lambda tx: tx.rows(sql, lane=lane_id, most=most, **values))]


def _new_row(
    key: str,
    payload: dict[str, Any],
    platform: str,
    account: str,
    chat_id: str | None,
    message_id: str | None,
    delivery_id: str | None,
    kind: str,
) -> dict[str, Any]:
    """Return the checked columns of a new message, without its time."""
    require_identifier(platform, "platform")
    for name, value in (("chat_id", chat_id), ("message_id", message_id), ("delivery_id", delivery_id)):
        optional_text(value, name)
    if not isinstance(account, str):
        raise InvalidValue(f"account must be a string, not {type(account).__name__}")
    uid = new_uid()
    return {
        "uid": uid,
        "lane_id": short_form(require_name(key, "key")),
        "session_key": stored_name(key),
        "kind": kind,
        "state": "accepted",
        "delivery_key": digest("uid", uid) if not delivery_id else digest("delivery", platform, account, delivery_id),
        "message_key": digest("message", platform, account, chat_id or "", message_id) if message_id else None,
        "message_ref": short_form(message_id) if message_id else None,
        "platform": platform,
        "account": account,
        "chat_id": chat_id,
        "message_id": stored_name(message_id) if message_id else None,
        "delivery_id": delivery_id or None,
        "payload": encode_payload(payload, "payload"),
    }


def _add(tx: Transaction, queue: QueueRow, row: dict[str, Any], node: str | None) -> Accepted:
    """Insert a message; if another lane gets the same message at once, the transaction is retried, and finds it."""
    tx.send(_INSERT, **row)
    stored = tx.row(f"SELECT {INBOX} FROM inbox WHERE delivery_key = :key", key=row["delivery_key"])
    assert stored is not None
    is_first = queue.waiting_count == 0
    queue.add_waiting(1, stored[0])
    queue.save(tx)
    if is_first:
        queue.notify(tx, node)
    return Accepted("accepted", inbox_row(stored), queue.waiting_count)


def lock_or_add_queue(tx: Transaction, lane_id: str, stored_key: str | None) -> QueueRow:
    """Lock the row of a lane, which is made if it does not exist; the key is in its stored form."""
    queue, _ = lock_queue(tx, lane_id, NOTHING)
    if queue is None:
        add_queue(tx, lane_id if stored_key is None else decode_text(str(stored_key)))
        queue, _ = lock_queue(tx, lane_id, NOTHING)
    assert queue is not None
    return queue


def _oldest(rows: Sequence[Values]) -> InboxRow:
    return inbox_row(min(rows, key=lambda row: int(row[0])))
