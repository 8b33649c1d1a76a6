"""What a search looks up among the words of all messages: those that begin with a text, or that contain it."""

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
    """Words that are to be looked up: those that begin with a text, or that contain it."""

    text: str
    is_beginning: bool = False


Expand = Callable[[Pattern], Sequence[str] | None]
"""The words of a pattern; None: so many that it is better not to name them."""


def pattern_of(leaf: Leaf, longest: int) -> Pattern | None:
    """The words that a leaf stands for, if it stands for several; an index cuts them where they are the longest."""
    match leaf:
        case Words(words, _, prefix) if prefix and not is_unspaced(words[-1][0]):
            return Pattern(words[-1][:longest], is_beginning=True)
        case Part(text) if SHORTEST_FRAGMENT <= len(text) <= longest and _is_inside_a_word(text):
            return Pattern(text)
        case _:
            return None


def pieces_of(text: str, longest: int) -> Iterator[str | Pattern]:
    """The words that a text is made of, the first of which may begin before it and the last go on after it."""
    if not text.isascii():
        yield from _pairs_of(text)
        return
    for found in _fragment.finditer(text):
        if found.start() > 0 and found.end() < len(text):
            yield found[0][:longest]
        elif SHORTEST_FRAGMENT <= len(found[0]) <= longest:
            yield Pattern(found[0], is_beginning=found.start() > 0)


def _is_inside_a_word(text: str) -> bool:
    """Whether a text, wherever it stands, is a part of one word."""
    return not is_unspaced(text[0]) and analyze.words(text) == [text]


def _pairs_of(text: str) -> Iterator[str]:
    """The neighbours in a text that belong to a script without spaces: those are words."""
    return (one + other for one, other in pairwise(text) if is_unspaced(one) and is_unspaced(other))
