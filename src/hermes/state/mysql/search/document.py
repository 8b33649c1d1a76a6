"""A message as the full-text index holds it: its words in their order, and marks that say where and whose it is.

The words come from our analyzer, so that the server has nothing to decide about them. A mark begins with `GAP`, and no
word of a query is one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from hermes.query import analyze
from hermes.query.analyze import GAP

EVERYTHING = GAP * 2
"""The mark that every message has."""
DISORDERED = GAP * 3
"""The mark of a message of which not every place of a word is noted."""
CUT = GAP * 4
"""The mark of a message of which not every character of a word is noted."""

MAX_WORD = 500
"""Longer words are cut."""
MAX_PLACES = 100_000
"""Of a longer text only the beginning is kept in its order."""
WORD_BYTES = 4
SPAN_BITS = 10
SPAN = 1 << SPAN_BITS
"""Ids are grouped into spans of so many."""


class Blob(bytes):
    """Bytes as a row of the index holds them."""

    __slots__ = ()


class Entry(NamedTuple):
    """What the index gets for a message."""

    words: list[str]
    """In their order."""
    rest: list[str]
    """Words whose place is not noted, and marks."""


def entry(role: str, session_id: str, source: str | None, owner: str | None, text: str) -> Entry:
    """The index entry of a message."""
    stream = analyze.stream(text).split()
    is_cut = len(max(stream, key=len, default="")) > MAX_WORD
    if is_cut:
        stream = [word[:MAX_WORD] for word in stream]
    words, later = stream[:MAX_PLACES], stream[MAX_PLACES:]
    rest = [EVERYTHING, facet("r", role), facet("i", session_id)]
    if source is not None:
        rest.append(facet("s", source))
    if owner is not None:
        rest.append(facet("o", owner))
    if is_cut:
        rest.append(CUT)
    if later:
        rest += [DISORDERED, *(set(later) - set(words))]
    return Entry(words, rest)


def facet(kind: str, value: str) -> str:
    """The mark by which messages of a role (r), source (s), owner (o) or session (i) are found."""
    return f"{GAP}{kind}{value if len(value) < MAX_WORD - 2 else blake2b(value.encode()).hexdigest()}"


def packed_words(ids: Iterable[int]) -> Blob:
    """Ids of words as a row holds them."""
    return Blob(array("I", ids).tobytes())


def packed_places(ids: Iterable[int]) -> Blob:
    """The places of messages in their span, as a row holds them."""
    return Blob(array("H", [each % SPAN for each in ids]).tobytes())


def unpacked_places(packed: bytes) -> set[int]:
    """The places in a row."""
    return set(array("H", packed))


class Text:
    """The words of a message as a row holds them, taken apart when that is needed."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @cached_property
    def words(self) -> array[int]:
        """The ids of its words in their order, and of its marks."""
        return array("I", self._packed)

    @cached_property
    def present(self) -> frozenset[int]:
        """The same in no order."""
        return frozenset(self.words)

    def has_in_a_row(self, steps: Sequence[Sequence[int]]) -> bool:
        """Whether somewhere in it one word of each step follows one of the step before."""
        if all(len(step) == 1 for step in steps):
            return self._has(packed_words(step[0] for step in steps))
        first, *others = map(frozenset, steps)
        last = len(self.words) - len(others)
        return any(
            all(self.words[at + further] in step for further, step in enumerate(others, start=1))
            for at, word in enumerate(self.words[:last])
            if word in first
        )

    def _has(self, row: bytes) -> bool:
        """Whether words that are packed too stand in it, and not only bytes that look so."""
        at = self._packed.find(row)
        while at % WORD_BYTES and at >= 0:
            at = self._packed.find(row, at + 1)
        return at >= 0
