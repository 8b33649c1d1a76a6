"""Replay: read a session, and on request the sessions it continues, as a conversation for models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.state.engine import Reading
from hermes.state.messages.conversation import CONVERSATION_COLUMNS, ChainMessage, merge_chain, project
from hermes.state.operations import may_see, session_owner_condition
from hermes.state.owner import Asker
from hermes.state.rows import uid_of
from hermes.state.sessions.lineage.kinds import ChildKind
from hermes.state.sessions.lineage.links import ancestors

if TYPE_CHECKING:
    from hermes.state.row_types import ConversationMessage


def load_conversation(
    tx: Reading, session_id: str, asker: Asker, *, include_ancestors: bool, include_inactive: bool
) -> list[ConversationMessage]:
    """Return the conversation of a session that the asker may see; ancestors are the sessions it continues."""
    if include_ancestors and not may_see(tx, session_id, asker):
        return []
    continued = ancestors(tx, [session_id], asker, kinds=(ChildKind.COMPRESSION,)) if include_ancestors else {}
    sessions = list(continued)[::-1]
    if len(sessions) > 1:
        rows = merge_chain([_rows_with_uids(tx, each) for each in sessions], include_inactive=include_inactive)
    else:
        rows = _conversation_rows(tx, session_id, include_inactive, asker)
    return project(rows, drop_repeats=include_ancestors)


def _rows_with_uids(tx: Reading, session_id: str) -> list[ChainMessage]:
    """Return all messages of a session, including undone ones."""
    rows = tx.rows(
        f"""SELECT id, uid, active, {CONVERSATION_COLUMNS} FROM messages WHERE session_id = :id ORDER BY id""",
        id=session_id,
    )
    return [
        ChainMessage(uid_of(number, uid, row[2], row[0], row[1]), bool(active), tuple(row))
        for number, uid, active, *row in rows
    ]


def _conversation_rows(tx: Reading, session_id: str, include_inactive: bool, asker: Asker) -> list[tuple[Any, ...]]:
    return tx.rows(
        f"""SELECT {CONVERSATION_COLUMNS} FROM messages
            WHERE session_id = :id {"" if include_inactive else "AND active = 1"}
                {session_owner_condition(asker)}
            ORDER BY id""",
        id=session_id,
        whose=asker.stored,
    )
