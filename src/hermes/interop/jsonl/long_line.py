"""A line of JSON that is too long for memory: an object whose messages are read one by one."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from hermes.interop.jsonl.lines import LONGEST_LINE, MOST_PARTS, bad_line, too_long, too_many_parts, unreadable
from hermes.state import json_text

MESSAGES = "messages"

_CHUNK = 1 << 16
_BLANK = " \t\r"
_scan = json.JSONDecoder().raw_decode


class LongLine:
    """One line of a file, read again on each iteration."""

    def __init__(self, path: Path, number: int, start: int) -> None:
        self._path = path
        self.number = number
        self._start = start
        self.end = start
        """The offset of the next line; known after the messages were iterated."""

    def head(self, complete_with: str) -> dict[str, Any]:
        """Return all fields but the messages.

        Fields after the messages are read too, unless `schema` has the value `complete_with`.
        """
        found: dict[str, Any] = {}
        for key, value in self._items():
            if key != MESSAGES:
                found[key] = value
            elif found.get("schema") == complete_with:
                break
        return found

    def __iter__(self) -> Iterator[Any]:
        return (value for key, value in self._items() if key == MESSAGES)

    def _items(self) -> Iterator[tuple[str, Any]]:
        """Yield each key with its value; `messages` is yielded once per message."""
        with self._path.open("rb") as file:
            file.seek(self._start)
            text = _Text(file, self._path, self.number)
            text.expect("{")
            is_done = text.follows("}")
            while not is_done:
                key = text.value()
                if not isinstance(key, str):
                    raise bad_line(self._path, self.number, "not JSON (a key must be a string)")
                text.expect(":")
                if key == MESSAGES and text.follows("["):
                    for message in _elements(text):
                        yield key, message
                elif key == MESSAGES:
                    if text.value() is not None:
                        raise bad_line(self._path, self.number, "the messages of an exported session must be a list")
                else:
                    yield key, text.value()
                is_done = text.expect(",}") == "}"
            text.expect_end()
            self.end = self._start + text.consumed


def _elements(text: _Text) -> Iterator[Any]:
    is_done = text.follows("]")
    while not is_done:
        yield text.value()
        is_done = text.expect(",]") == "]"


class _Text:
    """The characters of a file, read as needed."""

    def __init__(self, file: BinaryIO, path: Path, number: int) -> None:
        self._file = file
        self._path = path
        self._number = number
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._read = 0
        self._is_at_end = False

    @property
    def consumed(self) -> int:
        """How many bytes have been parsed."""
        return self._read - len(self._text[self._at :].encode()) - len(self._decoder.getstate()[0])

    def value(self) -> Any:
        """Parse and return the JSON value that begins here."""
        self._peek()
        size = _CHUNK
        while True:
            if self._text.count("[", self._at) + self._text.count("{", self._at) > MOST_PARTS:
                raise too_many_parts(self._path, self._number)
            try:
                value, end = _scan(self._text, self._at)
                # A number at the end of the buffer may have more digits in the file.
                if end < len(self._text) or self._is_at_end:
                    begin, self._at = self._at, end
                    return json_text.unmark_surrogates(value, self._text[begin:end])
            except RecursionError:
                raise bad_line(self._path, self._number, "nested too deeply") from None
            except ValueError as error:
                if self._is_at_end or "\n" in self._text[self._at :]:
                    raise unreadable(self._path, self._number, error, is_cut=self._is_at_end) from None
            space = LONGEST_LINE - (len(self._text) - self._at)
            if space <= 0:
                raise too_long(self._path, self._number)
            self._fill(min(size, space))
            size *= 2

    def follows(self, character: str) -> bool:
        """Skip this character if it comes next, and return whether it did."""
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def expect(self, characters: str) -> str:
        """Skip and return the next character, which must be one of these."""
        found = self._peek()
        if not found or found not in characters:
            error = ValueError(f"expected {' or '.join(characters)}")
            raise unreadable(self._path, self._number, error, is_cut=not found)
        self._at += 1
        return found

    def expect_end(self) -> None:
        """Skip the end of the line, or of the file."""
        if self._peek():
            self.expect("\n")

    def _peek(self) -> str:
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANK:
                self._at += 1
            if self._at < len(self._text) or self._is_at_end:
                return self._text[self._at : self._at + 1]
            self._fill(_CHUNK)

    def _fill(self, size: int) -> None:
        data = self._file.read(size)
        self._read += len(data)
        self._is_at_end = not data
        try:
            more = self._decoder.decode(data, final=self._is_at_end)
        except UnicodeDecodeError as error:
            raise unreadable(self._path, self._number, error, is_cut=self._is_at_end) from None
        self._text = self._text[self._at :] + more
        self._at = 0
