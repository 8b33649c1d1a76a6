"""Snippets of messages: on few lines, with the hits highlighted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from hermes.cli.display.terminal import ELLIPSIS, highlight, printable
from hermes.cli.display.wrapping import Glyph, count_fitting, find_line_end, join_glyphs, split_glyphs

MOST_LINES = 2

# The innermost marks without blanks next to them, because a message may contain such marks too.
_HIT = re.compile(r">>>(?![>\s])((?:(?!>>>|<<<).)+)(?<!\s)<<<", re.DOTALL)
_CUTS = re.compile(r"\A\.\.\.|\.\.\.\Z")


def format_snippet(snippet: str, width: int) -> list[str]:
    """Return at most `MOST_LINES` lines of `width` columns that show the first hit."""
    return [_style_line(line) for line in _lines(_split_marked(snippet), width)]


def split_hits(snippet: str) -> list[str]:
    """Return the parts of a snippet without its marks; every second one is a hit."""
    return _HIT.split(_CUTS.sub(ELLIPSIS, snippet))


def _split_marked(snippet: str) -> list[Glyph]:
    """Return the glyphs of a snippet on one line, without its marks."""
    text = ""
    hits: list[bool] = []
    for number, run in enumerate(split_hits(snippet)):
        for character in run:
            if character.isspace() and (not text or text[-1] == " "):
                continue
            safe = printable(character)
            text += safe
            hits += [number % 2 == 1] * len(safe)
    glyphs = []
    at = 0
    for glyph in split_glyphs(text):
        glyphs.append(glyph._replace(is_hit=hits[at]))
        at += len(glyph.text)
    return glyphs


def _lines(glyphs: Sequence[Glyph], width: int) -> list[Sequence[Glyph]]:
    """Return the lines from the start if they show every hit, else from a word before the first hit."""
    from_start, rest = _wrap(glyphs, width)
    if not any(glyph.is_hit for glyph in rest):
        return from_start
    first = next(number for number, glyph in enumerate(glyphs) if glyph.is_hit)
    # At the end of a line up to half of it may stay empty.
    left = MOST_LINES * width - width // 2 - sum(glyph.width for glyph in glyphs[first:])
    start = _find_word_start(glyphs, first, max(width // 3, left - 1))
    if start == 0:
        return from_start
    return _wrap([Glyph(ELLIPSIS, 1), *glyphs[start:]], width)[0]


def _wrap(glyphs: Sequence[Glyph], width: int) -> tuple[list[Sequence[Glyph]], Sequence[Glyph]]:
    """Return the first lines, and the glyphs that they do not show."""
    lines: list[Sequence[Glyph]] = []
    while glyphs and len(lines) < MOST_LINES:
        end = find_line_end(glyphs, width)
        if end < len(glyphs) and len(lines) == MOST_LINES - 1:
            end = count_fitting(glyphs, width - 1)
            kept = end - 1 if glyphs[end - 1].text == " " else end
            lines.append([*glyphs[:kept], Glyph(ELLIPSIS, 1)])
        else:
            lines.append(glyphs[:end])
        glyphs = glyphs[end:]
        if glyphs and glyphs[0].text == " ":
            glyphs = glyphs[1:]
    return lines, glyphs


def _find_word_start(glyphs: Sequence[Glyph], before: int, columns: int) -> int:
    """Return the start of a word at most so many columns before a place, or the place so far before it."""
    start = before - count_fitting(glyphs[:before][::-1], columns, least=0)
    if start == 0:
        return 0
    return next((at + 1 for at in range(start - 1, before) if glyphs[at].text == " "), start)


def _style_line(line: Sequence[Glyph]) -> str:
    runs = groupby(line, key=lambda glyph: glyph.is_hit)
    texts = ((is_hit, join_glyphs(list(run))) for is_hit, run in runs)
    return "".join(highlight(text) if is_hit else text for is_hit, text in texts).rstrip()
