"""Cut the part of a message that shows why it matched."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from unicodedata import normalize

from hermes.query import analyze
from hermes.query.stems import MARK as STEM_MARK
from hermes.query.tree import Leaf, Part, Words

WIDTH = 200
OPEN, CLOSE, CUT = ">>>", "<<<", "..."

_SLICE = 65_536
_MAX_SPANS = 24
_MAX_PIECES, _MAX_RUN = 16, 32
_VOICED_MARKS = "\uff9e\uff9f"
_WORD_START = re.compile(r"\s\S")
_NOT_IN_WORDS = re.compile(r"[\W_]+")

Span = tuple[int, int, int]
"""Start, end, and the number of the wanted leaf."""
Folding = Callable[[str], tuple[str, Sequence[int]]]
"""Folds a text and returns, for each folded character, the position of its original."""


def snippet(text: str, wanted: Sequence[Leaf], width: int = WIDTH) -> str:
    """Return about `width` characters of a text around the matches, each between `>>>` and `<<<`."""
    spans = _spans(text, wanted)
    if not spans and not text.isascii() and (composed := normalize("NFKC", text)) != text:
        text, spans = composed, _spans(composed, wanted)
    start, end = _window(text, spans, width)
    pieces = []
    at = start
    for first, last in _merge_spans([span for span in spans if start <= span[0] and span[1] <= end]):
        pieces += [text[at:first], OPEN, text[first:last], CLOSE]
        at = last
    pieces.append(text[at:end])
    return CUT * (start > 0) + "".join(pieces) + CUT * (end < len(text))


def _spans(text: str, wanted: Sequence[Leaf]) -> list[Span]:
    """Return the positions of the leaves in the first slice of the text that has any of them."""
    # Lower case finds most and keeps every position; other texts are folded one character at a time.
    for foldings in ((_lower_with_positions,), (_lower_with_positions, _fold_with_positions)):
        for base in range(0, len(text), _SLICE):
            # Slices overlap, so that a match on the border is found.
            part = text[base : base + _SLICE + WIDTH]
            if found := _spans_of(part, wanted, foldings):
                found = (
                    found
                    if len(text) > _SLICE or text.isascii()
                    else _spans_of(part, wanted, (_lower_with_positions, _fold_with_positions))
                )
                return sorted((base + first, base + _with_marks(part, last), number) for first, last, number in found)
        if text.isascii():
            break
    return []


def _with_marks(text: str, end: int) -> int:
    """Extend the end of a match over the accents, joiners, sound marks and skin tones of its last character."""
    while end < len(text) and not text[end].isascii() and (text[end] in _VOICED_MARKS or not _fold_one(text[end])):
        end += 1
    return end


def _spans_of(text: str, wanted: Sequence[Leaf], foldings: Sequence[Folding]) -> list[Span]:
    found: list[Span] = []
    missing = list(enumerate(wanted))
    for fold in foldings:
        folded, origin = fold(text) if missing else ("", ())
        for number, leaf in list(missing):
            places = _occurrences(folded, leaf)
            found += [(origin[first], origin[last - 1] + 1, number) for first, last in places]
            if places:
                missing.remove((number, leaf))
    return found


def _lower_with_positions(text: str) -> tuple[str, Sequence[int]]:
    lowered = text.lower()
    return (lowered, range(len(text))) if len(lowered) == len(text) else ("", ())


def _fold_with_positions(text: str) -> tuple[str, Sequence[int]]:
    """Return the folded text, and for each of its characters the position of the original."""
    characters: list[str] = []
    origin: list[int] = []
    for position, character in enumerate(text):
        if character in _VOICED_MARKS and characters and characters[-1]:
            # A half-width kana and its mark are one character.
            characters[-1] = _fold_one(text[position - 1] + character)
            continue
        plain = _fold_one(character)
        characters.append(plain)
        origin.extend([position] * len(plain))
    return "".join(characters), origin


@lru_cache(maxsize=4_096)
def _fold_one(character: str) -> str:
    return analyze.fold(character)


def _occurrences(folded: str, leaf: Leaf) -> list[tuple[int, int]]:
    if isinstance(leaf, Words) and leaf.text.isascii() and leaf.text.isalnum() and not _has_forms(leaf):
        return _plain_occurrences(folded, leaf.text, prefix=leaf.prefix)
    for pattern in _patterns(leaf):
        found = [match.span() for match in islice(pattern.finditer(folded), _MAX_SPANS) if match[0]]
        if found:
            return found
    return []


def _plain_occurrences(folded: str, word: str, *, prefix: bool) -> list[tuple[int, int]]:
    """Return where an ASCII word occurs alone, or else beside a digit or a letter, or else inside other words.

    This is much faster than a regular expression.
    """
    alone: list[tuple[int, int]] = []
    beside: list[tuple[int, int]] = []
    inside: list[tuple[int, int]] = []
    at = folded.find(word)
    while at >= 0 and len(alone) < _MAX_SPANS:
        end = at + len(word)
        before, after = folded[at - 1 : at], folded[end : end + 1]
        if not before.isalnum() and (prefix or not after.isalnum()):
            alone.append((at, end))
        elif _is_border(before, word[0]) and (prefix or _is_border(word[-1], after)):
            beside.append((at, end))
        else:
            inside.append((at, end))
        at = folded.find(word, end)
    return alone or (beside or inside)[:_MAX_SPANS]


def _is_border(left: str, right: str) -> bool:
    """Whether a number and a letter meet, as in 5GB, or a word ends."""
    return not left.isalnum() or not right.isalnum() or left.isdigit() != right.isdigit()


def _has_forms(leaf: Words) -> bool:
    """Whether a leaf stands for several spellings."""
    return leaf.words[0].startswith(STEM_MARK) or analyze.is_measure(leaf.words[0])


@lru_cache(maxsize=256)
def _patterns(leaf: Leaf) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a leaf in folded text, the strictest first."""
    literal = re.escape(leaf.text).replace(r"\ ", r"\s+")
    if isinstance(leaf, Part):
        return (re.compile(literal),)
    if leaf.words[0].startswith(STEM_MARK):
        # Forms of a word begin like its stem, whose last letter may differ, as in happy and happi.
        stem = leaf.words[0].removeprefix(STEM_MARK)
        return (re.compile(rf"(?<![^\W_]){re.escape(stem[:-1] if stem[-1:] in 'iy' else stem)}[^\W_]{{0,7}}"),)
    if analyze.is_measure(leaf.words[0]):
        unit = leaf.text.lstrip("0123456789")
        number = leaf.text.removesuffix(unit)
        return (re.compile(rf"(?<![^\W_]){re.escape(number)}\s{{0,8}}{re.escape(unit)}(?![^\W_])"),)
    pieces = [re.escape(piece) for piece in _NOT_IN_WORDS.split(leaf.text) if piece][:_MAX_PIECES]
    if leaf.text and all(map(analyze.is_unspaced, leaf.text)):
        pieces = [r"\s{0,8}".join(map(re.escape, leaf.text[:_MAX_RUN]))]
    loose = r"[\W_]*".join(pieces or map(re.escape, leaf.words))
    return tuple(re.compile(form) for form in (_with_word_bounds(literal, leaf), _with_word_bounds(loose, leaf), loose))


def _with_word_bounds(form: str, leaf: Words) -> str:
    first, last = leaf.text[:1], leaf.text[-1:]
    before = r"(?<![^\W_])" if first.isalnum() and not analyze.is_unspaced(first) else ""
    after = r"(?![^\W_])" if last.isalnum() and not analyze.is_unspaced(last) and not leaf.prefix else ""
    return f"{before}(?:{form}){after}"


def _window(text: str, spans: Sequence[Span], width: int) -> tuple[int, int]:
    """Return the range of text that shows the most different leaves."""
    if len(text) <= width:
        return 0, len(text)
    if not spans:
        return 0, _word_start(text, width)
    best, most = spans[0], (0, 0)
    for at, first in enumerate(spans):
        end = first[0] + width * 3 // 4
        inside = []
        for start, last, number in islice(spans, at, None):
            if start > end:
                break
            if last <= end:
                inside.append(number)
        seen = (len(set(inside)), len(inside))
        if seen > most:
            best, most = first, seen
    start = max(0, min(best[0] - width // 4, len(text) - width))
    start = _word_start(text, start, best[0])
    return start, max(best[1], _word_end(text, start + width))


def _word_start(text: str, at: int, before: int | None = None) -> int:
    """Return the next start of a word, unless it is too far away."""
    if at == 0:
        return 0
    limit = min(at + 20, len(text) if before is None else before)
    space = _WORD_START.search(text, max(0, at - 1), limit + 1)
    return space.start() + 1 if space and space.start() + 1 <= limit else at


def _word_end(text: str, at: int) -> int:
    if at >= len(text):
        return len(text)
    cut = max(text.rfind(" ", at - 20, at), text.rfind("\n", at - 20, at))
    return cut if cut > 0 else at


def _merge_spans(spans: Sequence[Span]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end, _ in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
