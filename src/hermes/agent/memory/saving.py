"""Saves memories before a session ends: one short turn of which no message is stored."""

from __future__ import annotations

from threading import Timer
from typing import TYPE_CHECKING, Any

from hermes.agent.history.notes import format_note
from hermes.agent.listener import Listener
from hermes.agent.models.choice import OFFLINE
from hermes.agent.models.model import Cancellation
from hermes.agent.turns.turn import Turn, TurnLimits
from hermes.agent.turns.turn_record import TurnRecord
from hermes.errors import StaleLease
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.agent.open_session import OpenSession

TOOLSET = "memory"
MAX_STEPS = 4

REQUEST = format_note(
    "This session is about to end, and the next one starts without its messages. Store with the memory tool what will"
    " matter later: lasting facts about the user and their preferences that are not in your notes yet. If there is"
    " nothing to store, call no tool. The user does not see your answer; keep it to one word."
)


class _UnstoredRecord(TurnRecord):
    """A record that stores nothing, so that the session stays as it is."""

    def add(self, role: str, content: Any, **fields: Any) -> int | None:
        """Add a message for the model only."""
        self.messages.append({"role": role, "content": content, **fields})
        return None

    def save_partial(self, content: str, reasoning: str, uid: str) -> None:
        """Store nothing."""


def save_memories(session: OpenSession, limit_s: float, cancellation: Cancellation) -> bool:
    """Ask the model to store what should be remembered; return whether the notes have changed."""
    is_possible = session.is_stored and TOOLSET in session.toolsets and session.model.provider != OFFLINE
    if not is_possible or not session.store.list_recent_user_messages(session.session_id, 1):
        return False
    record = _UnstoredRecord(session, listener := Listener())
    record.load()
    record.add("user", REQUEST)
    call = Cancellation()
    timer = Timer(limit_s, call.cancel)
    timer.daemon = True
    unregister = cancellation.on_cancel(call.cancel)
    before = session.agent.memory.read(session.owner)
    limits = TurnLimits(frozenset((TOOLSET,)), MAX_STEPS, may_compress=False, must_answer=False)
    timer.start()
    try:
        outcome = Turn(session, record, listener, call, limits=limits).run()
    finally:
        timer.cancel()
        unregister()
    if isinstance(outcome.error, StaleLease):
        raise outcome.error
    if outcome.status == "failed":
        warn(__name__, "the memories of session %s are not all saved: %s", session.session_id, outcome.error)
    return session.agent.memory.read(session.owner) != before
