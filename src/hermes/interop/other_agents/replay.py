"""Conversations in files of lines: which lines they are, and reading them again."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hermes.interop.jsonl.lines import Line, changed_line
from hermes.state.rows import Row

Reader = Callable[[Line], Iterable[Row]]
"""Makes messages of lines that are given to it one after the other."""


class Replay:
    """The messages of a conversation, made of its lines whenever they are gone through."""

    def __init__(self, path: Path, begin: Callable[[], Reader]) -> None:
        self._path = path
        self._begin = begin
        self._numbers, self._starts = array("Q"), array("Q")

    def note(self, line: Line) -> None:
        """Let a line belong to it."""
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
