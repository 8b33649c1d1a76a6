"""A message in the full-text index: a tsvector of its words, and of marks for its role, session, source and owner.

The words come from our analyzer, so that the server does not split the text. A mark begins with `GAP`, which no word
contains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

from hermes.query import analyze
from hermes.query.analyze import GAP

INCOMPLETE = GAP * 2
"""The mark of a message whose words, or positions of words, do not all fit into a tsvector."""
NOTHING = GAP * 3
"""A mark that no message has."""

SHIFTS = (10, 14, 18, 22)
"""Every message has a mark for each span of 2**10, 2**14, ... ids that contains it: so an index without an order can be
queried for a span, and takes as long as the span is large, however many messages have a word."""

MAX_WORD = 500
"""Longer words are cut; a lexeme may have 2046 bytes."""
MAX_BYTES = 800_000
"""A tsvector may have one megabyte."""
MAX_PLACE, MAX_PLACES = 16_383, 255
"""The last position that can be stored, and how many of one word."""


class Vector(NamedTuple):
    """The index entry of a message."""

    text: str
    """The tsvector in the server's syntax."""
    words: list[str]
    """Its words, in any order and perhaps several times; parts and stems too, some of which begin with `GAP`."""


def vector(message_id: int, role: str, session_id: str, source: str | None, owner: str | None, text: str) -> Vector:
    """Return the index entry of a message."""
    words = analyze.stream(text).split()
    marks = [span_mark(level, message_id) for level in range(len(SHIFTS))]
    marks += [facet("r", role), facet("i", session_id)]
    if source is not None:
        marks.append(facet("s", source))
    if owner is not None:
        marks.append(facet("o", owner))
    if _fits(words):
        lexemes = _with_places(words)
    else:
        marks.append(INCOMPLETE)
        words = _limit_words(words)
        lexemes = " ".join([f"'{word}'" for word in words])
    return Vector(" ".join([*map(quote_lexeme, marks), lexemes]), words)


def findable_words(entries: Iterable[Vector]) -> set[str]:
    """The words of messages that can be found by their beginning or by a part."""
    words: set[str] = set()
    for each in entries:
        words.update(each.words)
    return {word for word in words if word[0] != GAP}


def facet(kind: str, value: str) -> str:
    """The mark for messages of a role (r), source (s), owner (o) or session (i)."""
    return f"{GAP}{kind}{value if len(value) <= MAX_WORD else blake2b(value.encode()).hexdigest()}"


def span_mark(level: int, message_id: int) -> str:
    """The mark of the span with an id, at one level."""
    return f"{GAP}{level}{message_id >> SHIFTS[level]:x}"


def quote_lexeme(lexeme: str) -> str:
    """A lexeme in the syntax of tsvectors and tsqueries."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def array(texts: Iterable[str]) -> str:
    """Texts in the server's syntax for an array."""
    return "{" + ",".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts) + "}"


def _fits(stream: list[str]) -> bool:
    """Whether every word can be stored with all its positions."""
    if len(stream) > MAX_PLACE or max(map(len, stream), default=0) > MAX_WORD:
        return False
    return (
        len(stream) <= MAX_PLACES or max(count for word, count in Counter(stream).items() if word != GAP) <= MAX_PLACES
    )


def _with_places(stream: list[str]) -> str:
    """The words with their positions, such as `'one':1 'two':2 'one':3`; the server joins those of the same word."""
    places = _place_texts()
    end = stream.index(GAP) if GAP in stream else len(stream)
    pieces = list(chain.from_iterable(zip(stream[:end], places, strict=False)))
    for place, word in enumerate(stream[end:], start=end):
        if word != GAP:
            pieces += (word, places[place])
    return f"'{''.join(pieces)}"[:-2]


@cache
def _place_texts() -> list[str]:
    """What is between the word at each position and the next word."""
    return [f"':{place} '" for place in range(1, MAX_PLACE + 1)]


def _limit_words(stream: list[str]) -> list[str]:
    """As many words of a very long text as fit, each once."""
    bounded: dict[str, None] = {}
    bytes_left = MAX_BYTES
    for word in dict.fromkeys(stream):
        if word != GAP and word[:MAX_WORD] not in bounded:
            bytes_left -= len(word[:MAX_WORD].encode()) + 8
            if bytes_left < 0:
                break
            bounded[word[:MAX_WORD]] = None
    return list(bounded)
