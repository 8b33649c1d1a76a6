"""The record of a turn: the messages of a session, and those that the turn adds to them, each stored at once."""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hermes.errors import MessageSpooled
from hermes.state.messages.conversation import SPEAKERS, without_memory_fences
from hermes.state.messages.partial import PARTIAL
from hermes.state.rows import Row

if TYPE_CHECKING:
    from hermes.state.owner_view import OwnerView


def new_uid() -> str:
    """A uid for a message that may be stored again."""
    return urlsafe_b64encode(os.urandom(12)).decode()


class TurnRecord:
    """A session as one turn knows it: what was said before, and what it says itself."""

    def __init__(
        self,
        store: OwnerView,
        session_id: str,
        *,
        moved: Callable[[str], None],
        notice: Callable[[str], None],
    ) -> None:
        self.session_id = session_id
        self.messages: list[Row] = []
        """In the form of `get_messages_as_conversation`."""
        self.has_grown = False
        """Whether the turn has added anything since it was loaded."""
        self.store = store
        self._moved = moved
        self.notice = notice

    def load(self) -> None:
        """Read what is stored, also by others."""
        self.follow()
        self.messages = [{**message} for message in self.store.get_messages_as_conversation(self.session_id)]
        self.has_grown = False

    def add(self, role: str, content: Any, **fields: Any) -> int | None:
        """Store a message and answer its id; it is durable when this returns, without an id if it only waits to be."""
        message = {"role": role, "content": content, "uid": new_uid()} | {
            name: value for name, value in fields.items() if value
        }
        try:
            message_id = self._store_now(message)
        except KeyboardInterrupt:
            self._store_now(message)  # it has happened, whatever the person wishes now; a second one gets through
            raise
        if role in SPEAKERS and isinstance(content, str):
            content = without_memory_fences(content)  # as it will be read again
        self.messages.append({**message, "content": content})
        self.has_grown = True
        # If it came too late to be copied it goes there by itself; the uid sees to it that it is there once.
        while message_id is not None and self.follow():
            message_id = self._store_now(message)
        return message_id

    def keep_partial(self, content: str, reasoning: str, uid: str) -> None:
        """Store what has come of an answer; `add` with the same uid completes it."""
        message = {
            "role": "assistant",
            "content": content or None,
            "reasoning": reasoning or None,
            "finish_reason": PARTIAL,
            "uid": uid,
        }
        self.store.append_messages(self.session_id, [message])

    def follow(self) -> bool:
        """Go on in the newest session of the chain; whether that is another, because somebody has compressed this."""
        tip = self.store.get_compression_tip(self.session_id)
        if tip == self.session_id:
            return False
        self.session_id = tip
        self._moved(tip)
        return True

    def _store_now(self, message: Row) -> int | None:
        try:
            return self.store.append_messages(self.session_id, [message])[0]
        except MessageSpooled as error:
            self.notice(str(error))
            return None
