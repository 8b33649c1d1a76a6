"""Connections of the HTTP server: how many there may be, and how slow a client may be."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 15.0
"""How long a client may take for the head of a request."""
MOST_CONNECTIONS = 512
STALL_S = 30.0
"""How long a client may read nothing of what waits for it, also when the connection is being closed."""


class LimitedProtocol(H11Protocol):
    """A connection that is closed if the head of a request is not complete in time, or if its client reads nothing."""

    head_s = HEAD_S
    stall_s = STALL_S
    most_connections = MOST_CONNECTIONS
    _waiting: asyncio.TimerHandle | None = None
    _looking: asyncio.TimerHandle | None = None
    _is_full = False
    _unread: int | None = None
    """How much waited for the client at the last look, if it was too much or the connection was being closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.abort()
            return
        self._wait_for_head()
        self._looking = self.loop.call_later(self.stall_s, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def pause_writing(self) -> None:
        """Note that the client does not read as fast as it gets data."""
        self._is_full = True
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._is_full, self._unread = False, None
        super().resume_writing()

    def _look(self) -> None:
        """End the connection if its client has read nothing since the last look: closing it would wait for ever."""
        unread = None
        if self._is_full or self.transport.is_closing():
            unread = self.transport.get_write_buffer_size()
            if self._unread is not None and unread >= self._unread:
                self.transport.abort()
                return
        self._unread = unread
        self._looking = self.loop.call_later(self.stall_s, self._look)

    def _wait_for_head(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        self.transport.abort()


def protocol_with(**limits: Any) -> type[LimitedProtocol]:
    """Return the protocol with other limits."""
    return type("LimitedProtocol", (LimitedProtocol,), limits)
