"""Separates reasoning that a model writes between `<think>` and `</think>` from the answer.

The text arrives in pieces, and a tag may be split over several of them: text that could become a tag is held back, at
most as many characters as a tag has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

PieceKind = Literal["text", "thought", "reconsidered"]

_NAMES = ("think", "thinking", "reasoning", "reasoning_scratchpad", "thought")
_TAG = re.compile(rf"(?<![`\"'])<(/?)(?:{'|'.join(_NAMES)})>", re.IGNORECASE)
_TAGS = tuple(f"<{slash}{name}>" for slash in ("", "/") for name in _NAMES)
LONGEST_TAG = max(map(len, _TAGS))


class Piece(NamedTuple):
    """A piece of an answer; `reconsidered` is empty and means that all text before it was reasoning."""

    kind: PieceKind
    text: str


@dataclass(slots=True)
class ThoughtFilter:
    """Splits the pieces of an answer into text and reasoning, without the tags."""

    _held: str = ""
    _before: str = ""
    """The last character that was passed on; a tag after a quotation mark is quoted text, not a tag."""
    _is_thinking: bool = False
    _has_thought: bool = False
    _has_text: bool = False
    _seen: list[Piece] = field(default_factory=list)

    def take(self, text: str) -> list[Piece]:
        """Return the pieces that are certain after this text."""
        return self._take(text, is_last=False)

    def finish(self) -> list[Piece]:
        """Return the text that was held back."""
        return self._take("", is_last=True)

    def _take(self, text: str, *, is_last: bool) -> list[Piece]:
        self._seen = []
        text = self._before + self._held + text
        at = len(self._before)
        for tag in _TAG.finditer(text):
            if tag.start() < at:
                continue
            self._emit(text[at : tag.start()])
            self._switch(is_closing=bool(tag[1]))
            at = tag.end()
        end = len(text) if is_last else _certain_end(text, at)
        self._emit(text[at:end])
        self._before, self._held = text[max(0, end - 1) : end], text[end:]
        return self._seen

    def _switch(self, *, is_closing: bool) -> None:
        if is_closing and not self._is_thinking and self._has_text:
            self._seen.append(Piece("reconsidered", ""))
            self._has_text = False
        self._is_thinking, self._has_thought = not is_closing, True

    def _emit(self, text: str) -> None:
        if not self._is_thinking and self._has_thought and not self._has_text:
            text = text.lstrip()  # the blank lines between the reasoning and the answer
        if text:
            self._seen.append(Piece("thought" if self._is_thinking else "text", text))
            self._has_text = self._has_text or not self._is_thinking


def _certain_end(text: str, at: int) -> int:
    """Return the start of a possible tag at the end of a text, or the length of the text."""
    start = text.rfind("<", max(at, len(text) - LONGEST_TAG))
    is_open = start >= 0 and any(tag.startswith(text[start:].lower()) for tag in _TAGS)
    return start if is_open else len(text)
