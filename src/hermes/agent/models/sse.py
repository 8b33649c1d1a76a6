"""Server-sent events: bytes in, in any pieces, events out."""

from __future__ import annotations

from codecs import getincrementaldecoder
from typing import NamedTuple

from hermes.errors import ModelGarbled

MAX_EVENT_CHARACTERS = 8 * 1024 * 1024
"""What is longer than this is no event, and must not fill the memory."""


class ServerEvent(NamedTuple):
    """One event of a stream."""

    data: str
    name: str = ""


class EventDecoder:
    """Cuts a stream of bytes into events, wherever the bytes were split."""

    def __init__(self) -> None:
        self._decode = getincrementaldecoder("utf-8-sig")(errors="replace").decode
        self._pending = ""
        self._data: list[str] = []
        self._size = 0
        self._name = ""

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that are complete now."""
        return self._take(self._decode(data))

    def finish(self) -> list[ServerEvent]:
        """What is left at the end: an event that lacks its blank line is one all the same."""
        return self._take(self._decode(b"", True) + "\n\n", at_end=True)

    def _take(self, text: str, *, at_end: bool = False) -> list[ServerEvent]:
        text = self._pending + text
        # A carriage return may be the first half of a line end.
        kept = "\r" if text.endswith("\r") and not at_end else ""
        *lines, rest = _lines(text[: len(text) - len(kept)])
        self._pending = rest + kept
        events = [event for line in lines if (event := self._take_line(line))]
        if self._size + len(self._pending) > MAX_EVENT_CHARACTERS:
            raise ModelGarbled(f"the answer has an event of more than {MAX_EVENT_CHARACTERS} characters")
        return events

    def _take_line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._size += len(value)
        elif field == "event":
            self._name = value
        return None

    def _complete(self) -> ServerEvent | None:
        data, name = self._data, self._name
        self._data, self._size, self._name = [], 0, ""
        return ServerEvent("\n".join(data), name) if data else None


def _lines(text: str) -> list[str]:
    """The lines of a text, and last what follows the last line end; no other character ends a line here."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
