"""The output of a command, in limited memory."""

from __future__ import annotations

import codecs
from threading import Lock

HEAD_BYTES = 24_000
TAIL_BYTES = 24_000


SHOWN_BYTES = 2_000
"""How much of the end is shown while the command runs."""


class Output:
    """The output of a running command; if it is too long, only the first and the last bytes are kept."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._omitted = 0
        self._lock = Lock()

    def add(self, data: bytes) -> None:
        """Add new output."""
        with self._lock:
            free = HEAD_BYTES - len(self._head)
            self._head += data[:free]
            self._tail += data[free:]
            if len(self._tail) > 2 * TAIL_BYTES:
                self._cut_tail()

    @property
    def tail(self) -> str:
        """The end of the output that was not taken yet; what it shows may begin in the middle of a line."""
        with self._lock:
            end = bytes((self._tail or self._head)[-SHOWN_BYTES:])
        return _decode(_from_character(end), is_last=False)[0]

    def take(self, *, is_last: bool) -> str:
        """Return the output since the last call; an incomplete character waits for its rest, unless `is_last`."""
        with self._lock:
            self._cut_tail()
            if not self._omitted:
                text, rest = _decode(bytes(self._head + self._tail), is_last=is_last)
            else:
                before, _ = _decode(bytes(self._head), is_last=False)
                after, rest = _decode(_from_character(bytes(self._tail)), is_last=is_last)
                text = f"{before}\n[... {self._omitted} bytes of output omitted ...]\n{after}"
            self._head, self._tail, self._omitted = bytearray(rest), bytearray(), 0
            return text

    def _cut_tail(self) -> None:
        excess = len(self._tail) - TAIL_BYTES
        if excess > 0:
            del self._tail[:excess]
            self._omitted += excess


def _decode(data: bytes, *, is_last: bool) -> tuple[str, bytes]:
    """Return the text of some bytes, and the incomplete character at their end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, is_last)
    return text, decoder.getstate()[0]


def _from_character(data: bytes) -> bytes:
    """Return some bytes without an incomplete character at their beginning."""
    return data[next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0) :]
