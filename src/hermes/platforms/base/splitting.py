"""Splitting a long text into messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from wcwidth import iter_graphemes

Length = Callable[[str], int]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_NUMBER_LENGTH = len("\n(999/999)")


class Fence(NamedTuple):
    """The line that opened a block of code."""

    marker: str
    info: str

    @property
    def opening(self) -> str:
        """The line that opens the block again."""
        return f"{self.marker}{self.info}\n"

    @property
    def closing(self) -> str:
        """The line that closes the block."""
        return f"\n{self.marker}"


def split_text(text: str, limit: int, length: Length = len, *, numbered: bool = False) -> list[str]:
    """Return a text in parts that are not longer than a limit, measured with `length`.

    A text is split at the last line break in the second half of a part, else at the last blank, else between
    characters as people see them. A block of code that is split is closed and opened again.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    if _fits(text, limit, length):
        return [text]
    most = limit - _NUMBER_LENGTH if numbered and limit > 2 * _NUMBER_LENGTH else limit
    parts, fence, rest = [], None, text
    while rest:
        part, fence, rest = _first_part(rest, fence, most, length)
        if part.strip():
            parts.append(part)
    if most == limit or len(parts) < 2:
        return parts or [text[: _fitting(text, limit, length)]]
    return [f"{part}\n({number}/{len(parts)})" for number, part in enumerate(parts, 1)]


def _first_part(text: str, fence: Fence | None, limit: int, length: Length) -> tuple[str, Fence | None, str]:
    """Return the first part, the block of code that is open after it, and the rest of the text."""
    opening = fence.opening if fence else ""
    if fence and 2 * length(opening + fence.closing) > limit:
        opening, fence = "", None  # the lines of the block would leave too little for its content
    available = limit - length(opening)
    if _fits(text, available, length):
        return opening + text, None, ""
    cut, skipped, after = _cut(text, available, length, fence)
    if after and (needed := available - length(after.closing)) > 0:
        cut, skipped, after = _cut(text, needed, length, fence)
    if after and 2 * length(after.opening + after.closing) > limit:
        after = None
    part, rest = opening + text[:cut], text[cut + skipped :]
    if after is None:
        return part.rstrip(), None, rest.lstrip("\n")
    return part + after.closing, after, rest


def _cut(text: str, limit: int, length: Length, fence: Fence | None) -> tuple[int, int, Fence | None]:
    """Return where to cut a text, how many characters to leave out there, and the block that is open then."""
    end = _fitting(text, limit, length)
    cut, skipped = end, 0
    line_break = text.rfind("\n", 0, end + 1)
    if line_break > 0 and 2 * length(text[:line_break]) > limit:
        cut, skipped = line_break, 1
    else:
        blank = text.rfind(" ", 1, end + 1)
        if blank > 0 and text[:blank].strip():
            cut, skipped = blank, 1
    line = text.rfind("\n", 0, cut) + 1
    if open_fence(text[:line], fence) is None and _FENCE.match(text, line):
        if line > 1 and text[: line - 1].strip():
            return line - 1, 1, None  # a block begins in the last line: it belongs to the next part
        if text[cut : cut + 1] != "\n":
            return cut, skipped, None  # the line is too long to open a block
    return cut, skipped, open_fence(text[:cut], fence)


def _fits(text: str, limit: int, length: Length) -> bool:
    """Whether a text is not longer than a limit; of a very long one only a beginning is measured."""
    size = max(limit, 1)
    while size < len(text):
        if length(text[:size]) > limit:
            return False
        size *= 2
    return length(text) <= limit


def _fitting(text: str, limit: int, length: Length) -> int:
    """Return how many characters fit, without splitting one that people see as one."""
    low, high = 0, max(limit, 1)
    while high < len(text) and length(text[:high]) <= limit:
        low, high = high, 2 * high
    high = min(high, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if length(text[:middle]) <= limit else (low, middle - 1)
    low = max(low, 1)
    begin = max(text.rfind("\n", 0, low), text.rfind(" ", 0, low)) + 1
    end = begin
    for grapheme in iter_graphemes(text[begin : low + 64]):
        if end + len(grapheme) > low:
            break
        end += len(grapheme)
    return end or low


def open_fence(text: str, fence: Fence | None = None) -> Fence | None:
    """Return the block of code that is open at the end of a text, which may begin in one."""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if match is None:
            continue
        marker, info = match[1], match[2].strip()
        if fence is None:
            if "`" not in info or marker[0] == "~":
                fence = Fence(marker, info)
        elif marker.startswith(fence.marker) and not info:
            fence = None
    return fence
