"""Steering: messages of the user that a running turn takes in."""

from __future__ import annotations

from threading import Lock

from hermes.agent.turns.incoming import Incoming


class Steering:
    """Hands messages from any thread to one running turn.

    An accepted message is answered in the turn, unless the turn fails or is stopped; then `untaken` returns it if the
    turn has not stored it.
    """

    def __init__(self) -> None:
        self._waiting: list[Incoming] = []
        self._is_closed = False
        self._lock = Lock()

    def offer(self, text: str, uid: str) -> bool:
        """Give the turn a message; return False if the turn can no longer take it."""
        message = Incoming(text, uid)
        with self._lock:
            if not self._is_closed:
                self._waiting.append(message)
            return not self._is_closed

    def close(self) -> None:
        """Refuse further messages; those accepted before stay."""
        with self._lock:
            self._is_closed = True

    def close_if_empty(self) -> bool:
        """Refuse further messages unless some are waiting; return whether none is, so that the turn can end."""
        with self._lock:
            self._is_closed = self._is_closed or not self._waiting
            return not self._waiting

    def untaken(self) -> list[Incoming]:
        """Return the accepted messages that the turn has not stored, the oldest first."""
        with self._lock:
            return list(self._waiting)

    def mark_taken(self, message: Incoming) -> None:
        """Drop a message that the turn has stored."""
        with self._lock:
            self._waiting.remove(message)
