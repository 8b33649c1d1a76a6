"""The session that was used last: ready for the next borrower, without the way to the pool and back."""

from __future__ import annotations

import os
import threading

from hermes.state.postgres.session import PostgresSession

MOST_USES = 1_000
"""How often a session is spared before it goes back to the pool, which replaces connections that are old."""

_inherited: list[PostgresSession] = []
"""Sessions of the process that this one was forked from: not even letting go of them is safe here."""


class Spare:
    """Keeps one session, as long as nobody waits for the pool."""

    def __init__(self) -> None:
        self._session: PostgresSession | None = None
        self._uses = 0
        self._waiting = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def is_there(self) -> bool:
        """Whether a session is kept."""
        return self._session is not None

    def take(self) -> PostgresSession | None:
        """The session, if there is one; whoever gets none has to say when his wait for the pool is over."""
        if self._process != os.getpid():
            self._leave_parent()
        with self._lock:
            session, self._session = self._session, None
            if session is None:
                self._waiting += 1
            return session

    def stop_waiting(self) -> None:
        """Hear that somebody who got none has one from the pool, or has given up."""
        with self._lock:
            self._waiting -= 1

    def keep(self, session: PostgresSession) -> bool:
        """Keep a session; False if it should go back to the pool."""
        with self._lock:
            self._uses += 1
            if self._session is not None or self._waiting or self._uses % MOST_USES == 0:
                return False
            self._session = session
            return True

    def give_up(self) -> PostgresSession | None:
        """Hand out the session for good."""
        with self._lock:
            session, self._session = self._session, None
            return session

    def _leave_parent(self) -> None:
        if self._session is not None:
            _inherited.append(self._session)
        self._session, self._waiting, self._lock, self._process = None, 0, threading.Lock(), os.getpid()
