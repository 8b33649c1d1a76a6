"""A connection as a stream of lines."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self, cast

_MANY_BYTES = 1024 * 1024
"""The socket is not read while lines of this length wait for the program."""
_LINE_BYTES = 100
"""What a line costs besides its text, so that empty lines count too."""


class LineStream(asyncio.Protocol):
    """Yields the lines that have arrived, also if the connection was lost meanwhile; None for one that is too long."""

    def __init__(self, most_bytes: int, on_open: Callable[[LineStream], None] | None = None) -> None:
        self._most_bytes = most_bytes
        self._on_open = on_open
        self._transport: asyncio.Transport | None = None
        self._part = bytearray()
        self._is_too_long = False
        self._lines: deque[bytes | None] = deque()
        self._waiting_bytes = 0
        self._written_bytes = 0
        self._is_ended = False
        self._changed = asyncio.Event()

    # --- called by the event loop -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the connection."""
        self._transport = cast("asyncio.Transport", transport)
        if self._on_open is not None:
            self._on_open(self)

    def data_received(self, data: bytes) -> None:
        """Divide what has arrived into lines."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            self._finish_line()
        self._add(rest)
        if ends:
            self._changed.set()

    def eof_received(self) -> bool:
        """Note that the other side sends no more; it may still read."""
        self._end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection has ended."""
        self._end()

    # --- lines --------------------------------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes | None:
        while not self._lines:
            if self._is_ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        line = self._lines.popleft()
        self._waiting_bytes -= len(line or b"") + _LINE_BYTES
        if self._waiting_bytes <= _MANY_BYTES and not self._is_ended and self._transport is not None:
            self._transport.resume_reading()
        return line

    @property
    def has_ended(self) -> bool:
        """Whether no more lines arrive; those that have arrived may wait."""
        return self._is_ended

    def end(self) -> None:
        """Take no more lines."""
        if self._transport is not None:
            self._transport.pause_reading()
        self._end()

    def _add(self, data: bytes) -> None:
        if self._is_too_long or len(self._part) + len(data) > self._most_bytes:
            self._is_too_long = True
            self._part.clear()
        else:
            self._part += data

    def _finish_line(self) -> None:
        line = None if self._is_too_long else bytes(self._part)
        self._part.clear()
        self._is_too_long = False
        self._lines.append(line)
        self._waiting_bytes += len(line or b"") + _LINE_BYTES
        if self._waiting_bytes > _MANY_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def _end(self) -> None:
        if not self._is_ended and (self._part or self._is_too_long):
            self._finish_line()  # the last line may have no line break
        self._is_ended = True
        self._changed.set()

    # --- writing ------------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether lines can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def unread_bytes(self) -> int:
        """How much of what was sent the operating system has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def taken_bytes(self) -> int:
        """How much of what was sent the operating system has taken so far."""
        return self._written_bytes - self.unread_bytes

    def write(self, data: bytes) -> None:
        """Send data, without waiting; nothing happens if the connection has ended."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
            self._written_bytes += len(data)

    async def flush(self, timeout_s: float) -> None:
        """Wait until everything is sent, but not longer than this."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while self.is_open and self.unread_bytes and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)

    def close(self) -> None:
        """End the connection; what was written before is still sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection now."""
        if self._transport is not None:
            self._transport.abort()
