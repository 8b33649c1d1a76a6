"""Messages that are still being written: stored early, and completed in place."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from hermes.state.engine import Reading, Transaction
from hermes.state.messages.drafts import JSON_FIELDS, REASONING_FIELDS, Draft
from hermes.state.rows import count_tool_calls, decode_json, tool_names

PARTIAL = "partial"
"""The finish_reason of an incomplete answer; an append with the same uid replaces it."""

_CHANGED = tuple(dict.fromkeys(("content", "finish_reason", "token_count", *JSON_FIELDS, *REASONING_FIELDS)))
_UPDATE = f"UPDATE messages SET {', '.join(f'{name} = :{name}' for name in _CHANGED)} WHERE id = :id"


class StoredMessage(NamedTuple):
    """A message that is already stored."""

    id: int
    is_open: bool
    is_active: bool
    tool_calls: Any


def find_by_given_uid(tx: Reading, session_id: str, uid: str) -> StoredMessage | None:
    """Return the message of a session with a uid that the caller chose, or None."""
    row = tx.row(
        f"""SELECT id, role, finish_reason, active, tool_calls FROM messages
            WHERE session_id = :id AND uid = :uid {tx.dialect.given_uid_condition}""",
        id=session_id,
        uid=uid,
    )
    if row is None:
        return None
    calls = decode_json(row[4], otherwise=None, what="tool_calls") if row[4] else None
    return StoredMessage(int(row[0]), row[1] == "assistant" and row[2] == PARTIAL, bool(row[3]), calls)


def complete_message(tx: Transaction, session_id: str, known: StoredMessage, message: Draft) -> Counter[str]:
    """Replace an incomplete message, and return how many more calls of each tool the session now has.

    Its id and its time stay, so that it keeps its position.
    """
    tx.run(_UPDATE, id=known.id, **{name: message.values.get(name) for name in _CHANGED})
    if not known.is_active:
        return Counter()
    calls = message.tool_calls - count_tool_calls(known.tool_calls or None)
    if calls:
        tx.run(
            "UPDATE sessions SET tool_call_count = tool_call_count + :calls WHERE id = :id", id=session_id, calls=calls
        )
    tools = Counter(message.tools)
    tools.subtract(tool_names(known.tool_calls))
    return Counter({name: count for name, count in tools.items() if count})
