"""Add plain messages, where the engine can do that without reading the session first.

Plain are visible messages with new uids. Most appends are such, and each statement that they save is felt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hermes.state.engine import Transaction
from hermes.state.messages.drafts import Draft
from hermes.state.messages.tool_counts import count_tools
from hermes.state.owner import Asker


def append_plain(tx: Transaction, session_id: str, messages: list[Draft], asker: Asker) -> Sequence[int] | None:
    """Add messages to a session and return their ids; None if the general way is needed, and nothing was changed."""
    calls, preview = 0, None
    for message in messages:
        if message.is_repeatable or not message.is_active:
            return None
        calls += message.tool_calls
        if preview is None:
            preview = message.preview
    ids = tx.add_plain(session_id, [message.values for message in messages], preview, calls, asker)
    if ids is None:
        return None
    if calls and (tools := [name for message in messages for name in message.tools]):
        count_tools(tx, session_id, Counter(tools))
    tx.note_added_message(ids[-1])
    return ids
