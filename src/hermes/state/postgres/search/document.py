"""A message in the full-text index: a tsvector of its words, and of marks for its role, session, source and owner.

The words come from our analyzer, so that the server does not split the text. A mark begins with `GAP`, which no word
contains.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
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
    """The words that can be found by their beginning or by a part."""


def vector(message_id: int, role: str, session_id: str, source: str | None, owner: str | None, text: str) -> Vector:
    """Return the index entry of a message."""
    places, is_complete = _places(analyze.stream(text).split())
    marks = [span_mark(level, message_id) for level in range(len(SHIFTS))]
    marks += [facet("r", role), facet("i", session_id)]
    if source is not None:
        marks.append(facet("s", source))
    if owner is not None:
        marks.append(facet("o", owner))
    if not is_complete:
        marks.append(INCOMPLETE)
    lexemes = [f"'{word}'{at}" for word, at in places.items()]
    return Vector(" ".join([*map(quote_lexeme, marks), *lexemes]), [word for word in places if word[0] != GAP])


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


def _places(stream: list[str]) -> tuple[dict[str, str], bool]:
    """The positions of each word, such as `:3,7`, and whether they are complete."""
    places: dict[str, str] = {}
    for place, word in enumerate(stream[:MAX_PLACE], start=1):
        if word in places:
            places[word] += f",{place}"
        else:
            places[word] = f":{place}"
    places.pop(GAP, None)
    if len(stream) <= MAX_PLACE and len(max(stream, key=len, default="")) <= MAX_WORD and _is_sparse(stream, places):
        return places, True
    return _limit_words(stream, places), False


def _is_sparse(stream: list[str], places: dict[str, str]) -> bool:
    """Whether no word has more positions than can be stored."""
    return len(stream) <= MAX_PLACES or max(at.count(",") for at in places.values()) < MAX_PLACES


def _limit_words(stream: list[str], places: dict[str, str]) -> dict[str, str]:
    """As many words of a very long text as fit, without positions."""
    bounded: dict[str, str] = {}
    room = MAX_BYTES
    for word in (*places, *stream[MAX_PLACE:]):
        if word != GAP and word[:MAX_WORD] not in bounded:
            room -= len(word[:MAX_WORD].encode()) + 8
            if room < 0:
                break
            bounded[word[:MAX_WORD]] = ""
    return bounded
