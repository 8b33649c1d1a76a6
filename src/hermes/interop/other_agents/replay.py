"""A conversation in a JSON lines file: remembers which lines belong to it, and reads them again."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hermes.interop.jsonl.lines import Line, changed_line
from hermes.state.rows import Row

Reader = Callable[[Line], Iterable[Row]]
"""Turns lines, passed in order, into messages."""


class Replay:
    """The messages of a conversation, built from its lines on each iteration."""

    def __init__(self, path: Path, begin: Callable[[], Reader]) -> None:
        self._path = path
        self._begin = begin
        self._numbers, self._starts = array("Q"), array("Q")

    def note(self, line: Line) -> None:
        """Add a line to the conversation."""
        self._numbers.append(line.number)
        self._starts.append(line.start)

    def __iter__(self) -> Iterator[Row]:
        messages_of = self._begin()
        with self._path.open("rb") as file:
            for number, start in zip(self._numbers, self._starts, strict=True):
                file.seek(start)
                try:
                    messages = messages_of(Line(number, start, file.readline()))
                except (ValueError, LookupError, TypeError, AttributeError):
                    raise changed_line(self._path, number) from None
                yield from messages
