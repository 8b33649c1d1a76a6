"""Reading what a chat has stored."""

from __future__ import annotations

from hermes.state.rows import Row
from hermes_state import SessionDB
from tests.cli.conftest import Hermes


def sessions(hermes: Hermes) -> list[Row]:
    """Return all conversations, the most recently active first."""
    with SessionDB(hermes.database, read_only=True) as db:
        return [{**row} for row in db.list_sessions_rich(order_by_last_active=True, include_archived=True)]


def messages(hermes: Hermes, session_id: str) -> list[Row]:
    """Return the messages of a session, without undone ones."""
    with SessionDB(hermes.database, read_only=True) as db:
        return [{**row} for row in db.get_messages(session_id)]


def transcript(hermes: Hermes, session_id: str) -> list[tuple[str, str]]:
    """Return the role and the content of each message of a session."""
    return [(each["role"], each["content"]) for each in messages(hermes, session_id)]
