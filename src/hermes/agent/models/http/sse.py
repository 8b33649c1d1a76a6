"""Server-sent events: turns a stream of bytes, split anywhere, into events."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import NamedTuple

from hermes.errors import ModelGarbled

MAX_EVENT_BYTES = 2 * 1024 * 1024
"""Longer events are refused, so that they do not fill the memory."""

MAX_NAME_CHARACTERS = 100


class ServerEvent(NamedTuple):
    """One event of a stream."""

    data: str
    name: str = ""


class EventDecoder:
    """Splits a stream of bytes into events; each byte is read once."""

    def __init__(self) -> None:
        self._line = bytearray()
        """The beginning of a line that is not complete yet."""
        self._is_first = True
        self._was_return = False
        """Whether the last byte was a carriage return; a line feed after it belongs to the same line end."""
        self._data: list[str] = []
        self._size = 0
        self._name = ""

    def feed(self, data: bytes) -> list[ServerEvent]:
        """Return the events that these bytes complete."""
        if self._was_return and data:
            data = data.removeprefix(b"\n")
            self._was_return = False
        self._was_return = self._was_return or data.endswith(b"\r")
        *ended, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for end in ended:
            self._add(end)
            if event := self._take_line():
                events.append(event)
        self._add(rest)
        return events

    def finish(self) -> list[ServerEvent]:
        """Return the last event, even if the blank line after it is missing."""
        self._was_return = False
        return self.feed(b"\n\n")

    def _add(self, data: bytes) -> None:
        self._line += data
        if self._size + len(self._line) > MAX_EVENT_BYTES:
            raise ModelGarbled(f"the answer has an event of more than {MAX_EVENT_BYTES} bytes")

    def _take_line(self) -> ServerEvent | None:
        data, self._line = self._line, bytearray()
        if self._is_first:
            data, self._is_first = data.removeprefix(BOM_UTF8), False
        if not data:
            return self._complete()
        field, _, value = data.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._size += len(data) + 1
        elif field == "event":
            self._name = value[:MAX_NAME_CHARACTERS]
        return None

    def _complete(self) -> ServerEvent | None:
        data, name = self._data, self._name
        self._data, self._size, self._name = [], 0, ""
        return ServerEvent("\n".join(data), name) if data else None
