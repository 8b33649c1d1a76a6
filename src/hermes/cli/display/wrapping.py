"""Lines of text by display width, whatever the script: the one place that decides where a line breaks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from hermes.cli.display.terminal import display_width, graphemes, printable

LEAST_TEXT = 16
"""Rows with less text than this begin at the left edge."""

_CODES = re.compile(r"\x1b\[[0-9;]*m")


class Glyph(NamedTuple):
    """A character as people see it, its width in columns, and whether it is part of a hit."""

    text: str
    width: int
    is_hit: bool = False


def split_glyphs(text: str) -> list[Glyph]:
    """Return the glyphs of a printable text."""
    return [Glyph(grapheme, display_width(grapheme)) for grapheme in graphemes(text)]


def join_glyphs(glyphs: Sequence[Glyph]) -> str:
    """Return the text of glyphs."""
    return "".join([glyph.text for glyph in glyphs])


def wrap_text(text: str, width: int, *, breaks_words: bool = True) -> list[str]:
    """Return a text in printable lines of at most `width` columns, broken between words where possible.

    Without `breaks_words`, a word that is longer than a line stays whole, so that the user can copy it.
    """
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        shown = printable(line.expandtabs(4)).rstrip()
        if display_width(shown) <= width:
            lines.append(shown)
            continue
        rest: Sequence[Glyph] = split_glyphs(shown)
        while rest:
            end = find_line_end(rest, max(1, width), breaks_words=breaks_words)
            lines.append(join_glyphs(rest[:end]).rstrip())
            rest = skip_blanks(rest[end:])
    return lines


def find_line_end(glyphs: Sequence[Glyph], width: int, *, breaks_words: bool = True) -> int:
    """Return how many glyphs are on the first line: up to the last blank that fits.

    A word that would leave more than half of the line empty is broken, unless no word may be.
    """
    end = count_fitting(glyphs, width)
    if end == len(glyphs) or glyphs[end].text == " ":
        return end
    blank = next((at for at in range(end - 1, 0, -1) if glyphs[at].text == " "), 0)
    if breaks_words:
        return blank if blank > end // 2 else end
    return blank or next((at for at in range(end, len(glyphs)) if glyphs[at].text == " "), len(glyphs))


def count_fitting(glyphs: Sequence[Glyph], width: int, *, least: int = 1) -> int:
    """Return how many glyphs fit into so many columns; by default at least one, so that a loop over lines ends."""
    left = width
    for number, glyph in enumerate(glyphs):
        left -= glyph.width
        if left < 0:
            return max(least, number)
    return len(glyphs)


def skip_blanks(glyphs: Sequence[Glyph]) -> Sequence[Glyph]:
    """Return glyphs without the blanks at their start."""
    start = next((at for at, glyph in enumerate(glyphs) if glyph.text != " "), len(glyphs))
    return glyphs[start:]


def strip_codes(text: str) -> str:
    """Return a text without the codes of its colours."""
    return _CODES.sub("", text)


def taken_rows(text: str, width: int) -> int:
    """Return how many rows of a terminal a printable line takes."""
    text, width = text.expandtabs(8), max(2, width)
    columns = display_width(text)
    if columns <= width:
        return 1
    if columns == len(text):
        return -(-columns // width)
    rows, column = 1, 0
    for glyph in split_glyphs(text):
        if column + glyph.width > width:  # a wide character is not split over two rows
            rows, column = rows + 1, 0
        column += glyph.width
    return rows


def wrap_line(line: str, width: int, *, margin: int | None = None, breaks_words: bool = False) -> list[str]:
    """Return a line in rows that are broken between words, the further ones below its first word.

    A word that is longer than a row stays whole, unless `breaks_words` is set. `margin` is the number of blanks before
    the further rows.
    """
    indent = len(line) - len(line.lstrip(" "))
    margin = indent if margin is None else margin
    if width - margin < LEAST_TEXT:
        margin = 0
    first, *rest = wrap_text(line, max(1, width), breaks_words=breaks_words) or [""]
    if not rest:
        return [first]
    others = wrap_text(line[len(first) :].lstrip(" "), max(1, width - margin), breaks_words=breaks_words)
    return [first, *(" " * margin + each for each in others)]
