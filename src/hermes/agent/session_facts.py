"""The session of a conversation, as other programs see and name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.state.rows import AnyRow, Row
from hermes.state.usage.counters import COSTS, COUNTERS

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.models.model import Model
    from hermes.agent.open_session import OpenSession
    from hermes.state.owner_view import OwnerView
    from hermes.state.row_types import ConversationMessage

SESSION_META = "session_meta"
"""The role under which other programs store data about a session among its messages."""

USAGE_COLUMNS = (*COUNTERS, *COSTS, "cost_status")


class SessionFacts:
    """The session of a conversation: its messages, its title, its model and its counters."""

    def __init__(self, session: OpenSession) -> None:
        self.session = session
        """The session that the conversation is in now."""

    @property
    def agent(self) -> Agent:
        """The agent that the conversation uses."""
        return self.session.agent

    @property
    def store(self) -> OwnerView:
        """The sessions that the conversation and its tools may see."""
        return self.session.store

    @property
    def plain_store(self) -> OwnerView:
        """The same sessions, without the fence of a lease."""
        return self.session.plain_store

    @property
    def session_id(self) -> str:
        """The id of the current session; a compression changes it."""
        return self.session.session_id

    @property
    def is_stored(self) -> bool:
        """Whether the conversation has a message yet."""
        return self.session.is_stored

    @property
    def title(self) -> str | None:
        """The title of the session, or the one that it gets with its first message."""
        return self.session.title

    @property
    def model(self) -> Model:
        """The model that writes the next answers."""
        return self.session.model

    @property
    def history(self) -> list[ConversationMessage]:
        """The messages of the session, as `get_messages_as_conversation` returns them, without `session_meta`."""
        rows = self.store.get_messages_as_conversation(self.session_id)
        return [row for row in rows if row["role"] != SESSION_META]

    def set_title(self, text: str) -> str | None:
        """Set the title, now or with the first message, and return it as it is stored; empty text removes it.

        Raises `TitleTaken` if another session has it.
        """
        return self.session.set_title(text)

    def use(self, model: Model) -> None:
        """Switch to another model for the next turns; the system prompt does not change."""
        self.session.use(model)

    def usage(self) -> Row:
        """The token and cost counters of the session; empty before the first message."""
        row: AnyRow = self.store.get_session(self.session_id) or {}
        return {name: row[name] for name in USAGE_COLUMNS if name in row}

    def weight(self) -> int:
        """Return about how many bytes the conversation holds, for a cache with a limit."""
        return self.session.weight()
