"""A connection as a stream of lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self, cast

_MANY_BYTES = 1024 * 1024
"""The socket is not read while so much waits for the program, unless a line is incomplete."""


class LineStream(asyncio.Protocol):
    """Yields the lines that have arrived, also if the connection was lost meanwhile; None for one that is too long.

    What arrives is divided into lines when they are taken: dividing it at once would keep the event loop busy.
    """

    def __init__(self, most_bytes: int, on_open: Callable[[LineStream], None] | None = None) -> None:
        self._most_bytes = most_bytes
        self._on_open = on_open
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._start = 0
        """Where the next line begins in the buffer."""
        self._searched = 0
        """Between the start and here is no end of a line."""
        self._is_too_long = False
        """Whether the beginning of the next line was dropped."""
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
        """Keep what has arrived."""
        self._buffer += data
        if len(self._buffer) - self._start > _MANY_BYTES and self._transport is not None:
            self._transport.pause_reading()
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
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                return self._take(end, end + 1)
            if self._is_ended:
                if self._start == len(self._buffer) and not self._is_too_long:
                    raise StopAsyncIteration
                return self._take(len(self._buffer), len(self._buffer))  # the last line may have no line break
            self._wait_for_more()
            self._changed.clear()
            await self._changed.wait()

    @property
    def has_ended(self) -> bool:
        """Whether no more lines arrive; those that have arrived may wait."""
        return self._is_ended

    def end(self) -> None:
        """Take no more lines."""
        if self._transport is not None:
            self._transport.pause_reading()
        self._end()

    def _take(self, end: int, following: int) -> bytes | None:
        """Return the line that ends here; the next one begins after it."""
        is_too_long = self._is_too_long or end - self._start > self._most_bytes
        line = None if is_too_long else bytes(self._buffer[self._start : end])
        self._is_too_long = False
        self._start = self._searched = following
        if self._start >= len(self._buffer) // 2:  # not for every line, because it moves the rest
            self._drop_taken()
        if len(self._buffer) - self._start <= _MANY_BYTES and not self._is_ended and self._transport is not None:
            self._transport.resume_reading()
        return line

    def _wait_for_more(self) -> None:
        """Prepare for the rest of an incomplete line; the beginning of one that is too long is dropped."""
        self._drop_taken()
        if len(self._buffer) > self._most_bytes:
            self._is_too_long = True
            self._buffer.clear()
        self._searched = len(self._buffer)
        if self._transport is not None:
            self._transport.resume_reading()

    def _drop_taken(self) -> None:
        del self._buffer[: self._start]
        self._searched -= self._start
        self._start = 0

    def _end(self) -> None:
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
