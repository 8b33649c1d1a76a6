"""Undo the end of a conversation: messages are hidden, never deleted, and can be restored."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from hermes.errors import InvalidValue, UnknownMessage
from hermes.state.engine import Reading, Transaction
from hermes.state.messages.tool_counts import count_tools
from hermes.state.operations import Operations, owner_condition, session_owner_condition
from hermes.state.owner import Asker, OwnerName
from hermes.state.rows import (
    count_tool_calls,
    decode_content,
    decode_json,
    make_preview,
    message_row,
    require_flag,
    require_integer,
    tool_names,
)

if TYPE_CHECKING:
    from hermes.state.row_types import MessageRow, RewindRow, Rewound


class Rewinds(Operations):
    """Operations that undo and restore the end of a conversation."""

    def rewind_to_message(self, session_id: str, target_message_id: int, *, keep_target: bool = False) -> Rewound:
        """Undo a user message and everything after it; return rewound_count, target_message and new_head_id.

        With `keep_target` the message itself stays, and so do system messages directly after it, which hold what the
        user attached; the model can answer it again.
        """
        kept, target_id = (
            require_flag(keep_target, "keep_target"),
            require_integer(target_message_id, "target_message_id"),
        )
        now = self._clock()

        def rewind(tx: Transaction) -> Rewound:
            _lock(tx, session_id, self._asker)
            columns, rows = tx.table(
                f"""SELECT * FROM messages
                    WHERE id = :target AND session_id = :id {session_owner_condition(self._asker)}""",
                target=target_message_id,
                id=session_id,
                whose=self._asker.stored,
            )
            if not rows:
                raise UnknownMessage(f"message {target_message_id} not found in session {session_id!r}")
            target = cast("MessageRow", message_row(columns, rows[0]))
            if target["role"] != "user":
                raise InvalidValue(
                    f"message {target_message_id} has role {target['role']!r}; only a user message can be undone",
                    hint="list_recent_user_messages shows the candidates",
                )
            since = _after_attached(tx, session_id, target_id) if kept else target_id
            hidden = 0 if since is None else _set_active(tx, session_id, since, active=False)
            tx.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = :id", id=session_id)
            _record(tx, session_id, "rewind", target_id, hidden, now)
            head = tx.value("SELECT MAX(id) FROM messages WHERE session_id = :id AND active = 1", id=session_id)
            return {"rewound_count": hidden, "target_message": target, "new_head_id": head}

        return self._engine.write(rewind)

    def restore_rewound(self, session_id: str, since_message_id: int) -> int:
        """Restore undone messages from the given one on; return how many."""
        since = require_integer(since_message_id, "since_message_id")
        now = self._clock()

        def restore(tx: Transaction) -> int:
            if not _lock(tx, session_id, self._asker):
                return 0
            restored = _set_active(tx, session_id, since, active=True)
            if restored:
                _record(tx, session_id, "restore", since, restored, now)
            return restored

        return self._engine.write(restore)

    def list_rewinds(self, session_id: str, owner: OwnerName = None) -> list[RewindRow]:
        """Return the audit trail of a session's undone and restored messages, oldest first."""
        asker = self._asker_for(owner)

        def trail(tx: Reading) -> list[RewindRow]:
            rows = tx.rows(
                f"""SELECT id, action, target_message_id, message_count, at FROM rewinds
                    WHERE session_id = :id {session_owner_condition(asker)} ORDER BY id""",
                id=session_id,
                whose=asker.stored,
            )
            return [
                {"id": number, "action": action, "target_message_id": target, "message_count": count, "at": at}
                for number, action, target, count, at in rows
            ]

        return self._engine.read(trail)


def _after_attached(tx: Transaction, session_id: str, target_id: int) -> int | None:
    """Return the id of the first message after a message and the system messages that follow it."""
    first = tx.value(
        """SELECT MIN(id) FROM messages
           WHERE session_id = :id AND id > :target AND active = 1 AND role <> 'system'""",
        id=session_id,
        target=target_id,
    )
    return None if first is None else int(first)


def _lock(tx: Transaction, session_id: str, asker: Asker) -> bool:
    """Lock a session against changes by others; return whether the asker has it."""
    locked = tx.row(
        f"SELECT id FROM sessions WHERE id = :id {owner_condition(asker)} {tx.dialect.for_update}",
        id=session_id,
        whose=asker.stored,
    )
    return locked is not None


def _set_active(tx: Transaction, session_id: str, since: int, *, active: bool) -> int:
    """Undo or restore a session's messages from an id on, and update its counters."""
    affected = tx.rows(
        "SELECT tool_calls FROM messages WHERE session_id = :id AND id >= :since AND active = :was",
        id=session_id,
        since=since,
        was=int(not active),
    )
    sign = 1 if active else -1
    tx.run(
        "UPDATE messages SET active = :now WHERE session_id = :id AND id >= :since AND active = :was",
        id=session_id,
        since=since,
        now=int(active),
        was=int(not active),
    )
    calls = [decode_json(stored, otherwise=[], what="tool_calls") for (stored,) in affected if stored is not None]
    tools = Counter(name for value in calls for name in tool_names(value))
    count_tools(tx, session_id, Counter({name: sign * count for name, count in tools.items()}))
    tx.run(
        """UPDATE sessions SET message_count = message_count + :messages, tool_call_count = tool_call_count + :calls,
               preview = :preview WHERE id = :id""",
        id=session_id,
        messages=sign * len(affected),
        calls=sign * sum(count_tool_calls(value) for value in calls),
        preview=_first_preview(tx, session_id),
    )
    return len(affected)


def _first_preview(tx: Transaction, session_id: str) -> str | None:
    content = tx.value(
        """SELECT content FROM messages
           WHERE session_id = :id AND role = 'user' AND content IS NOT NULL AND active = 1 ORDER BY id LIMIT 1""",
        id=session_id,
    )
    return None if content is None else make_preview(decode_content(content))


def _record(tx: Transaction, session_id: str, action: str, target: int, count: int, now: float) -> None:
    tx.run(
        """INSERT INTO rewinds (session_id, action, target_message_id, message_count, at)
           VALUES (:id, :action, :target, :count, :now)""",
        id=session_id,
        action=action,
        target=target,
        count=count,
        now=now,
    )
