"""A message as the full-text index holds it: a tsvector of its words, and of marks that say where and whose it is.

The words come from our analyzer, so that the server has nothing to decide about them. A mark begins with `GAP`, which
no word contains.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from hermes.query import analyze
from hermes.query.analyze import GAP

INCOMPLETE = GAP * 2
"""The mark of a message of which not every word, or not every place of a word, fits into a tsvector."""
NOTHING = GAP * 3
"""A mark that no message has."""

SHIFTS = (10, 14, 18, 22)
"""Every message has a mark for each span of 2**10, 2**14, ... ids that it lies in: an index without any order can then
be asked about a span, and takes as long for that as the span is large, however many messages have a word."""

MAX_WORD = 500
"""Longer words are cut; a lexeme has room for 2046 bytes."""
MAX_BYTES = 800_000
"""A tsvector has room for a megabyte."""
MAX_PLACE, MAX_PLACES = 16_383, 255
"""The last place that can be noted, and how many of one word."""


class Vector(NamedTuple):
    """What the index gets for a message."""

    text: str
    """The tsvector as the server reads it."""
    words: list[str]
    """What can be found in it by its beginning or by a part."""


def vector(message_id: int, role: str, session_id: str, source: str | None, owner: str | None, text: str) -> Vector:
    """The index entry of a message."""
    places, is_complete = _places(analyze.stream(text).split())
    marks = [span_mark(level, message_id) for level in range(len(SHIFTS))]
    marks += [facet("r", role), facet("i", session_id)]
    if source is not None:
        marks.append(facet("s", source))
    if owner is not None:
        marks.append(facet("o", owner))
    if not is_complete:
        marks.append(INCOMPLETE)
    said = [f"'{word}'{at}" for word, at in places.items()]
    return Vector(" ".join([*map(quoted, marks), *said]), [word for word in places if word[0] != GAP])


def facet(kind: str, value: str) -> str:
    """The mark by which messages of a role (r), source (s), owner (o) or session (i) are found."""
    return f"{GAP}{kind}{value if len(value) <= MAX_WORD else blake2b(value.encode()).hexdigest()}"


def span_mark(level: int, message_id: int) -> str:
    """The mark of the span of a level that an id lies in."""
    return f"{GAP}{level}{message_id >> SHIFTS[level]:x}"


def quoted(lexeme: str) -> str:
    """A lexeme as tsvectors and tsqueries are written."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def array(texts: Iterable[str]) -> str:
    """Texts as the server reads an array."""
    return "{" + ",".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts) + "}"


def _places(stream: list[str]) -> tuple[dict[str, str], bool]:
    """Where each word stands, such as `:3,7`, and whether that is all there is to say."""
    places: dict[str, str] = {}
    for place, word in enumerate(stream[:MAX_PLACE], start=1):
        if word in places:
            places[word] += f",{place}"
        else:
            places[word] = f":{place}"
    places.pop(GAP, None)
    if len(stream) <= MAX_PLACE and len(max(stream, key=len, default="")) <= MAX_WORD and _is_sparse(stream, places):
        return places, True
    return _bounded(stream, places), False


def _is_sparse(stream: list[str], places: dict[str, str]) -> bool:
    """Whether no word stands in more places than can be noted."""
    return len(stream) <= MAX_PLACES or max(at.count(",") for at in places.values()) < MAX_PLACES


def _bounded(stream: list[str], places: dict[str, str]) -> dict[str, str]:
    """As many of the words of a very long text as there is room for, without places."""
    bounded: dict[str, str] = {}
    room = MAX_BYTES
    for word in (*places, *stream[MAX_PLACE:]):
        if word != GAP and word[:MAX_WORD] not in bounded:
            room -= len(word[:MAX_WORD].encode()) + 8
            if room < 0:
                break
            bounded[word[:MAX_WORD]] = ""
    return bounded
