"""Word patterns that a search looks up among the words of all messages: words with a prefix, or with a part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hermes.query import analyze
from hermes.query.analyze import is_unspaced
from hermes.query.tree import Leaf, Part, Words

SHORTEST_FRAGMENT = 3

_fragment = re.compile("[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Pattern:
    """The words that begin with a text, or that contain it."""

    text: str
    is_beginning: bool = False


Expand = Callable[[Pattern], Sequence[str] | None]
"""Returns the words of a pattern; None if they are too many for a query."""


def pattern_of(leaf: Leaf, longest: int) -> Pattern | None:
    """The pattern of a leaf that stands for several words; the index cuts words to `longest` characters."""
    match leaf:
        case Words(words, _, prefix) if prefix and not is_unspaced(words[-1][0]):
            return Pattern(words[-1][:longest], is_beginning=True)
        case Part(text) if SHORTEST_FRAGMENT <= len(text) <= longest and _is_inside_a_word(text):
            return Pattern(text)
        case _:
            return None


def pieces_of(text: str, longest: int) -> Iterator[str | Pattern]:
    """Yield the words of a text; the first may begin before it and the last may continue after it."""
    if not text.isascii():
        yield from _pairs_of(text)
        return
    for found in _fragment.finditer(text):
        if found.start() > 0 and found.end() < len(text):
            yield found[0][:longest]
        elif SHORTEST_FRAGMENT <= len(found[0]) <= longest:
            yield Pattern(found[0], is_beginning=found.start() > 0)


def _is_inside_a_word(text: str) -> bool:
    """Whether a text is always a part of one word."""
    return not is_unspaced(text[0]) and analyze.words(text) == [text]


def _pairs_of(text: str) -> Iterator[str]:
    """Adjacent characters of a text in a script without spaces: the index holds such pairs as words."""
    return (one + other for one, other in pairwise(text) if is_unspaced(one) and is_unspaced(other))
