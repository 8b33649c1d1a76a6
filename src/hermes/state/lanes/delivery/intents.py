"""Intents: messages that are stored in the outbox before they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hermes.errors import InvalidValue
from hermes.state.engine import Transaction, Values
from hermes.state.lanes.identity import decode_payload, encode_payload, require_name, short_form, stored_name
from hermes.state.lanes.types import Intent
from hermes.state.rows import decode_text, require_identifier, require_number

if TYPE_CHECKING:
    from hermes.state.lanes.types import OutboxRow

_OUTBOX = (
    *("id", "key_ref", "idempotency_key", "lane_id", "session_key", "turn_id", "platform", "account", "kind", "state"),
    *("reason", "attempts", "holder", "created_at", "due_at", "expires_at", "finished_at", "receipt", "payload"),
)
OUTBOX = ", ".join(_OUTBOX)
"""The columns of `outbox_row`."""

DRAFT_DUE_AT = -1.0
"""The due time of a draft: no node takes it, and an index finds it. Messages that ended have 0."""

_ADDED = (
    *("key_ref", "idempotency_key", "lane_id", "session_key", "turn_id", "platform", "account", "kind", "state"),
    *("attempts", "created_at", "due_at", "expires_at", "dead_at", "payload"),
)
_COMPLETE = """UPDATE outbox SET state = 'pending', payload = :payload, kind = :kind, due_at = :due_at,
                   expires_at = :expires_at, turn_id = COALESCE(:turn_id, turn_id)
               WHERE key_ref = :key_ref AND state = 'draft'"""


class IntentDraft(NamedTuple):
    """A checked intent: its columns, and the durations from which its times follow."""

    values: dict[str, Any]
    delay_s: float
    ttl_s: float | None
    is_draft: bool

    def columns(self, turn_id: str | None, now: float) -> dict[str, Any]:
        """Return all columns of the row at a time of the database."""
        due_at = DRAFT_DUE_AT if self.is_draft else now + self.delay_s
        expires_at = None if self.ttl_s is None else now + self.ttl_s
        times = {"created_at": now, "due_at": due_at, "expires_at": expires_at}
        return {**self.values, **times, "turn_id": turn_id, "attempts": 0, "dead_at": 0.0}


def draft_intents(intents: Sequence[Intent], session_key: str | None) -> list[IntentDraft]:
    """Return checked intents; those that name no lane belong to the given one."""
    return [draft_intent(each, session_key) for each in intents]


def draft_intent(intent: Intent, session_key: str | None = None) -> IntentDraft:
    """Return a checked intent."""
    if not isinstance(intent, Intent):
        raise InvalidValue(f"an intent must be an Intent, not {type(intent).__name__}")
    key = require_name(intent.key, "key")
    lane = session_key if intent.session_key is None else require_name(intent.session_key, "session_key")
    delay_s = require_number(intent.delay_seconds, "delay_seconds")
    ttl_s = None if intent.ttl_seconds is None else require_number(intent.ttl_seconds, "ttl_seconds")
    if delay_s < 0 or (ttl_s is not None and ttl_s < 0):
        raise InvalidValue("delay_seconds and ttl_seconds must not be negative")
    values = {
        "key_ref": short_form(key),
        "idempotency_key": stored_name(key),
        "lane_id": "" if lane is None else short_form(lane),
        "session_key": None if lane is None else stored_name(lane),
        "platform": require_identifier(intent.platform, "platform"),
        "account": intent.account,
        "kind": require_identifier(intent.kind, "kind"),
        "state": "draft" if intent.draft else "pending",
        "payload": encode_payload(dict(intent.payload), "payload"),
    }
    return IntentDraft(values, delay_s, ttl_s, intent.draft)


def add_intents(tx: Transaction, drafts: Sequence[IntentDraft], turn_id: str | None, now: float) -> None:
    """Store intents. One whose key is stored changes nothing, except that it completes a draft."""
    for each in drafts:
        columns = each.columns(turn_id, now)
        if not each.is_draft:
            tx.send(_COMPLETE, **columns)
        tx.send(tx.dialect.insert_or_ignore("outbox", _ADDED), **columns)


def outbox_row(values: Values, *, was_sending: bool = False) -> OutboxRow:
    """Return a message to a platform from the columns of `OUTBOX`."""
    row: dict[str, Any] = dict(zip(_OUTBOX, values, strict=True))
    ref, key, lane_id = row.pop("key_ref"), row.pop("idempotency_key"), row.pop("lane_id")
    row["key"] = ref if key is None else decode_text(key)
    row["session_key"] = (lane_id or None) if row["session_key"] is None else decode_text(row["session_key"])
    for name in ("platform", "account", "reason"):
        row[name] = decode_text(row[name])
    row["receipt"], row["payload"] = decode_payload(row["receipt"]), decode_payload(row["payload"])
    row["was_sending"] = was_sending
    return cast("OutboxRow", row)
