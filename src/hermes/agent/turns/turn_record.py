"""The record of a turn: the messages of its session, and those that the turn adds, each stored at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes.agent.history.notes import note_rows
from hermes.errors import MessageSpooled
from hermes.ids import new_caller_uid
from hermes.state.messages.conversation import SPEAKERS, strip_memory_fences
from hermes.state.messages.partial import PARTIAL
from hermes.state.rows import Row

if TYPE_CHECKING:
    from hermes.agent.listener import Listener
    from hermes.agent.open_session import OpenSession


class TurnRecord:
    """The messages of a session as one turn sees them."""

    def __init__(self, session: OpenSession, listener: Listener) -> None:
        self.messages: list[Row] = []
        """In the form of `get_messages_as_conversation`."""
        self.has_grown = False
        """Whether the turn has added a message since `load`."""
        self._session = session
        self._listener = listener
        self._notes: list[Row] = []
        """Messages for the model that are not stored."""
        self._added = 0
        """How many messages come after the notes."""

    def begin(self, notes: Sequence[str] = ()) -> None:
        """Read the stored messages and add notes for the model, which only this turn has."""
        self._notes, self._added = note_rows(notes), 0
        self.load()

    def load(self) -> None:
        """Read the stored messages, including those of other processes; the notes keep their place."""
        session = self._session
        session.follow()
        rows: list[Row] = [{**message} for message in session.store.get_messages_as_conversation(session.session_id)]
        place = max(0, len(rows) - self._added)
        self.messages = [*rows[:place], *self._notes, *rows[place:]]
        self.has_grown = False

    def add(self, role: str, content: Any, **fields: Any) -> int | None:
        """Store a message durably and return its id; None if it is only spooled."""
        message = {"role": role, "content": content, "uid": new_caller_uid()} | {
            name: value for name, value in fields.items() if value
        }
        try:
            message_id = self._store_now(message)
        except KeyboardInterrupt:
            # What the message says has happened, so it is stored all the same; a second Ctrl-C interrupts that.
            self._store_now(message)
            raise
        if role in SPEAKERS and isinstance(content, str):
            content = strip_memory_fences(content)  # as reading it returns it
        self.messages.append({**message, "content": content})
        self.has_grown = True
        self._added += 1
        # If another process compressed the session before the message was stored, the message is missing in the new
        # session. Its uid ensures that it is there once.
        while message_id is not None and self._session.follow():
            message_id = self._store_now(message)
        return message_id

    def save_partial(self, content: str, reasoning: str, uid: str) -> None:
        """Store the beginning of an answer; `add` with the same uid completes it."""
        message = {
            "role": "assistant",
            "content": content or None,
            "reasoning": reasoning or None,
            "finish_reason": PARTIAL,
            "uid": uid,
        }
        self._session.store.append_messages(self._session.session_id, [message])

    def _store_now(self, message: Row) -> int | None:
        try:
            return self._session.store.append_messages(self._session.session_id, [message])[0]
        except MessageSpooled as error:
            self._listener.notice(str(error))
            return None
