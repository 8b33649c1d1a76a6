"""Snippets of messages as they are shown: on few lines, with what was found standing out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from hermes.cli.display.terminal import ELLIPSIS, display_width, graphemes, highlight, printable

MOST_LINES = 2

# The innermost marks without a blank inside, because a message may have such marks of its own.
_HIT = re.compile(r">>>(?![>\s])((?:(?!>>>|<<<).)+)(?<!\s)<<<", re.DOTALL)
_CUTS = re.compile(r"\A\.\.\.|\.\.\.\Z")


class Glyph(NamedTuple):
    """What a person sees as one character, how wide it is, and whether it is part of what was found."""

    text: str
    width: int
    is_hit: bool


def format_snippet(snippet: str, width: int) -> list[str]:
    """At most `MOST_LINES` lines of `width` columns, with the first of what was found on them."""
    return [_style_line(line) for line in _lines(_split_glyphs(_CUTS.sub(ELLIPSIS, snippet)), width)]


def _split_glyphs(snippet: str) -> list[Glyph]:
    """The snippet on one line, without its marks."""
    text = ""
    hits: list[bool] = []
    # Splitting by a pattern with a group answers what is between, found, between, found, ...
    for number, run in enumerate(_HIT.split(snippet)):
        for character in run:
            if character.isspace() and (not text or text[-1] == " "):
                continue
            safe = printable(character)
            text += safe
            hits += [number % 2 == 1] * len(safe)
    glyphs = []
    at = 0
    for grapheme in graphemes(text):
        glyphs.append(Glyph(grapheme, display_width(grapheme), hits[at]))
        at += len(grapheme)
    return glyphs


def _lines(glyphs: Sequence[Glyph], width: int) -> list[Sequence[Glyph]]:
    """The lines that show the most: from the start if every hit is then on them, else from before the first."""
    from_start, rest = _wrap(glyphs, width)
    if not any(glyph.is_hit for glyph in rest):
        return from_start
    first = next(number for number, glyph in enumerate(glyphs) if glyph.is_hit)
    # At the end of a line up to half of it may stay empty.
    room = MOST_LINES * width - width // 2 - sum(glyph.width for glyph in glyphs[first:])
    start = _find_word_start(glyphs, first, max(width // 3, room - 1))
    if start == 0:
        return from_start
    return _wrap([Glyph(ELLIPSIS, 1, False), *glyphs[start:]], width)[0]


def _wrap(glyphs: Sequence[Glyph], width: int) -> tuple[list[Sequence[Glyph]], Sequence[Glyph]]:
    """As many lines as may be, and what is left over."""
    lines: list[Sequence[Glyph]] = []
    while glyphs and len(lines) < MOST_LINES:
        end = _find_line_end(glyphs, width)
        if end < len(glyphs) and len(lines) == MOST_LINES - 1:
            end = _count_fitting(glyphs, width - 1)
            kept = end - 1 if glyphs[end - 1].text == " " else end
            lines.append([*glyphs[:kept], Glyph(ELLIPSIS, 1, False)])
        else:
            lines.append(glyphs[:end])
        glyphs = glyphs[end:]
        if glyphs and glyphs[0].text == " ":
            glyphs = glyphs[1:]
    return lines, glyphs


def _find_line_end(glyphs: Sequence[Glyph], width: int) -> int:
    """Where a line ends: at the last blank that fits, or inside of what is longer than half a line."""
    end = _count_fitting(glyphs, width)
    if end == len(glyphs) or glyphs[end].text == " ":
        return end
    blank = next((at for at in range(end - 1, 0, -1) if glyphs[at].text == " "), 0)
    return blank if blank > end // 2 else end


def _count_fitting(glyphs: Sequence[Glyph], width: int) -> int:
    """How many glyphs fit; at least one, or there would be no end."""
    room = width
    for number, glyph in enumerate(glyphs):
        room -= glyph.width
        if room < 0:
            return max(1, number)
    return len(glyphs)


def _find_word_start(glyphs: Sequence[Glyph], before: int, columns: int) -> int:
    """The start of a word at most so many columns before a place, or the place so far away."""
    start = before
    while start > 0 and columns >= glyphs[start - 1].width:
        start -= 1
        columns -= glyphs[start].width
    if start == 0:
        return 0
    return next((at + 1 for at in range(start - 1, before) if glyphs[at].text == " "), start)


def _style_line(line: Sequence[Glyph]) -> str:
    runs = groupby(line, key=lambda glyph: glyph.is_hit)
    texts = ((is_hit, "".join(glyph.text for glyph in run)) for is_hit, run in runs)
    return "".join(highlight(text) if is_hit else text for is_hit, text in texts).rstrip()
