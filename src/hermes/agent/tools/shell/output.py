"""What a command has written, in bounded memory."""

from __future__ import annotations

import codecs
from threading import Lock

HEAD_BYTES = 24_000
TAIL_BYTES = 24_000


class Output:
    """Bytes from a running command; of too many at once the first and the last are kept."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._lock = Lock()

    def add(self, data: bytes) -> None:
        """Keep what has just been written."""
        with self._lock:
            room = HEAD_BYTES - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            if len(self._tail) > 2 * TAIL_BYTES:
                self._cut_tail()

    def take(self, *, is_last: bool) -> str:
        """What was written since this was asked last; half a character waits for its end, if there is one to come."""
        with self._lock:
            self._cut_tail()
            if not self._left_out:
                text, rest = _decode(bytes(self._head + self._tail), is_last=is_last)
            else:
                before, _ = _decode(bytes(self._head), is_last=False)
                after, rest = _decode(_from_character(bytes(self._tail)), is_last=is_last)
                text = f"{before}\n[... {self._left_out} bytes of output are left out here ...]\n{after}"
            self._head, self._tail, self._left_out = bytearray(rest), bytearray(), 0
            return text

    def _cut_tail(self) -> None:
        excess = len(self._tail) - TAIL_BYTES
        if excess > 0:
            del self._tail[:excess]
            self._left_out += excess


def _decode(data: bytes, *, is_last: bool) -> tuple[str, bytes]:
    """The text of some bytes, whatever they are, and the beginning of a character at their end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, is_last)
    return text, decoder.getstate()[0]


def _from_character(data: bytes) -> bytes:
    """Some bytes without the rest of a character that they begin with."""
    return data[next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0) :]
