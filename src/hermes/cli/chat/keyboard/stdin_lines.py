"""Reading lines from stdin so that signals are handled immediately."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from hermes.cli.chat.terminal.signals import Signals, raise_chat_ended
from hermes.errors import HermesError, InvalidValue
from hermes.phrases import format_size

CHUNK = 65_536
MAX_LINE_BYTES = 1024 * 1024


class StdinLines:
    """Reads stdin line by line."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._rest = b""
        self._is_at_end = False

    def read(self, draft: str = "") -> str:
        """Return the next line; raise EOFError at the end. The draft is ignored."""
        with self._signals.on_leave(raise_chat_ended):
            while b"\n" not in self._rest and not self._is_at_end:
                chunk = read_chunk()
                self._is_at_end = not chunk
                self._rest += chunk
                if len(self._rest) > MAX_LINE_BYTES and b"\n" not in self._rest:
                    self._rest, self._is_at_end = b"", True
                    raise InvalidValue(f"a line on stdin is longer than {format_size(MAX_LINE_BYTES)}; it was not sent")
        if not self._rest:
            raise EOFError
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")


def read_chunk() -> bytes:
    """Wait for the next bytes on stdin and return them; empty at its end."""
    return read_chunk_before(None) or b""


def read_chunk_before(deadline: float | None) -> bytes | None:
    """Return the next bytes on stdin (a line of a terminal), empty at its end, None after the deadline.

    The deadline is a time of `time.monotonic`.

    A signal that arrives just before a read, or on another thread, does not interrupt that read. So this waits until
    stdin is readable, and a signal wakes up that wait.
    """
    descriptor = sys.stdin.fileno()
    if os.name != "posix":
        return _read(descriptor)
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    before = signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    try:
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([descriptor, ours], [], [], left)
            if not ready:
                return None
            if ours in ready:
                os.read(ours, CHUNK)  # the signal handler has run, or runs when this returns
            if descriptor in ready:
                return _read(descriptor)
    finally:
        signal.set_wakeup_fd(before)
        os.close(ours)
        os.close(theirs)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError as error:
        raise HermesError(f"stdin cannot be read: {error.strerror}") from error
