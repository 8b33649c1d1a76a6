"""The trigrams that find parts of words: any three adjacent characters.

Those within a script without spaces are left out. They would be a fourth of the index, and the pairs in the word index
find the same texts. Where such a script meets another, or punctuation, two characters at the border stay.
"""

from __future__ import annotations

import re
from functools import cache

from hermes.query import analyze

MAX_ASKED = 10
"""The most trigrams of a part to query; the messages that have them are read anyway."""


@cache
def _inside() -> re.Pattern[str]:
    """A run of a script without spaces, with an inside; compiled when the first text beyond ASCII appears."""
    return re.compile(f"([{analyze.UNSPACED}]{{2}})[{analyze.UNSPACED}]+([{analyze.UNSPACED}]{{2}})")


def trigram_text(text: str) -> str:
    """The part of a text that is split into trigrams."""
    flat = analyze.fold_to_line(text)
    return flat if flat.isascii() else _inside().sub(r"\1\2", flat)


def trigrams_to_query(part: str) -> list[str]:
    """Trigrams that every text with this folded part has, but no more than are worth querying."""
    every = dict.fromkeys(part[at : at + 3] for at in range(len(part) - 2))
    found = [each for each in every if each.isascii() or not all(map(analyze.is_unspaced, each))]
    return found[:: -(-len(found) // MAX_ASKED)] if found else []
