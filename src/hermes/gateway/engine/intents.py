"""Replies and notices as intents for the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes.gateway.engine import texts
from hermes.gateway.engine.messages import Message, decode_message
from hermes.gateway.source import SessionSource
from hermes.state.lanes.types import Intent

if TYPE_CHECKING:
    from hermes.state.asynchronous.lanes import AsyncOutbox
    from hermes.state.lanes.types import InboxRow


def reply_key(uid: str) -> str:
    """Return the key of the answer to a message of the inbox."""
    return f"reply:{uid}"


def reply_intent(
    key: str, text: str, messages: Sequence[Message], session_key: str, account: str, ttl_s: float
) -> Intent:
    """Return the intent to answer messages: the last one is quoted, all are named."""
    last = messages[-1]
    answers = [each.message_id for each in messages if each.message_id]
    payload = _payload(last.source, text) | {"reply_to": last.message_id, "answers": answers}
    return Intent(
        key=key,
        payload=payload,
        platform=last.source.platform.value,
        account=account,
        session_key=session_key,
        kind="reply",
        ttl_seconds=ttl_s,
    )


def notice_intent(
    key: str, text: str, source: SessionSource, account: str, ttl_s: float, session_key: str | None = None
) -> Intent:
    """Return the intent to tell a chat something that answers no message."""
    return Intent(
        key=key,
        payload=_payload(source, text),
        platform=source.platform.value,
        account=account,
        session_key=session_key,
        kind="notice",
        ttl_seconds=ttl_s,
    )


def given_up_intent(row: InboxRow, ttl_s: float) -> Intent:
    """Return the intent to tell a chat that a message was given up; raise `InvalidValue` if it cannot be read."""
    text = texts.PARKED if row["state"] == "parked" else texts.QUARANTINED
    key, message = f"notice:dead:{row['uid']}", decode_message(row)
    if message.internal is not None:  # no message of a user is answered
        return notice_intent(key, text, message.source, row["account"], ttl_s, row["session_key"])
    return reply_intent(key, text, [message], row["session_key"], row["account"], ttl_s)


async def last_account(outbox: AsyncOutbox, session_key: str) -> str:
    """Return the account through which a chat got its last message, for one that answers no message of the chat."""
    rows = await outbox.of_lane(session_key, limit=1)
    return rows[0]["account"] if rows else ""


def _payload(source: SessionSource, text: str) -> dict[str, Any]:
    return {"chat_id": source.chat_id, "thread_id": source.thread_id, "chat_type": source.chat_type, "text": text}
