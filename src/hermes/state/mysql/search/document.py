"""A message in the full-text index: its words in their order, and marks for its role, session, source and owner.

The words come from our analyzer, so that the server does not split the text. A mark begins with `GAP`, and no word of a
query is one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from hermes.lazy import lazy
from hermes.query import analyze
from hermes.query.analyze import GAP

EVERYTHING = GAP * 2
"""The mark that every message has."""
DISORDERED = GAP * 3
"""The mark of a message for which not every position of a word is stored."""
CUT = GAP * 4
"""The mark of a message with a word that was cut."""

MAX_WORD = 500
"""Longer words are cut."""
MAX_PLACES = 100_000
"""Only this many words of a text are stored in their order."""
WORD_BYTES = 4
SPAN_BITS = 10
SPAN = 1 << SPAN_BITS
"""Ids are grouped into spans of this size."""


class Blob(bytes):
    """Bytes for a row of the index."""

    __slots__ = ()


class Entry(NamedTuple):
    """The index entry of a message."""

    words: list[str]
    """The words in their order."""
    rest: list[str]
    """Words without a position, and marks."""


def entry(role: str, session_id: str, source: str | None, owner: str | None, text: str) -> Entry:
    """Return the index entry of a message."""
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
    """The mark for messages of a role (r), source (s), owner (o) or session (i)."""
    return f"{GAP}{kind}{value if len(value) < MAX_WORD - 2 else blake2b(value.encode()).hexdigest()}"


def packed_words(ids: Iterable[int]) -> Blob:
    """Pack ids of words for a row."""
    return Blob(array("I", ids).tobytes())


def packed_places(ids: Iterable[int]) -> Blob:
    """Pack the positions of messages in their span for a row."""
    return Blob(array("H", [each % SPAN for each in ids]).tobytes())


def unpacked_places(packed: bytes) -> set[int]:
    """Unpack the positions in a row."""
    return set(array("H", packed))


class Text:
    """The packed words of a message, unpacked when needed."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @lazy
    def words(self) -> array[int]:
        """The ids of its words in their order, and of its marks."""
        return array("I", self._packed)

    @lazy
    def present(self) -> frozenset[int]:
        """The same ids without an order."""
        return frozenset(self.words)

    def has_in_a_row(self, steps: Sequence[Sequence[int]]) -> bool:
        """Whether it has one word of each step directly after one of the step before."""
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
        """Whether it contains packed words, at a word boundary and not only as equal bytes."""
        at = self._packed.find(row)
        while at % WORD_BYTES and at >= 0:
            at = self._packed.find(row, at + 1)
        return at >= 0
