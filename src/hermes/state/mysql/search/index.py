"""Finding messages through the full-text index.

For each word it holds, span by span, which messages have it. So the newest matches are found by walking down the spans
of the rarest word that a match must have; what the other words have to say is read for those spans alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from hermes.query.tree import And, Leaf, Node, Part, Words
from hermes.state.engine import Coverage, Found, Reading, TimeRange, Values
from hermes.state.mysql import errors
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.mysql.search.document import DISORDERED, EVERYTHING, MAX_WORD, SPAN_BITS, Text, unpacked_places
from hermes.state.mysql.search.evaluation import Places, cover, holds, matching
from hermes.state.mysql.search.expression import (
    Condition,
    asks_for_order,
    both,
    lacks_something,
    of_query,
    of_scope,
    without_order,
    words_of,
)
from hermes.state.mysql.search.vocabulary import Vocabulary
from hermes.state.operations import chunks, placeholders
from hermes.state.search.scope import Scope
from hermes.state.search.time_ranges import next_time_ranges
from hermes.state.server.search.asking import SAMPLE, is_frequent, read_coverage, within_deadline
from hermes.state.server.search.word_patterns import Pattern, pattern_of

FIRST_SPANS, MOST_SPANS = 2, 512
"""How many spans are looked at first, and together at most."""
FEW_SPANS = 32
"""So many spans are named one by one."""

_STALE = "SELECT message_id FROM stale_index WHERE message_id <= :upto ORDER BY message_id DESC LIMIT :limit"
_DAMAGED = (*errors.DAMAGED, *errors.MISSING)


class MySQLIndex:
    """The index of one store."""

    def coverage(self, tx: Reading, max_stale: int, /) -> Coverage:
        """Which messages it knows; what it does not is in no batch yet, or was changed since."""
        return read_coverage(tx, max_stale, _STALE)

    def candidates(
        self, tx: Reading, query: Node, scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> Iterator[Found]:
        """The messages with low <= id <= high that may match, newest id first, about `limit` at a time."""
        reader = _IndexReader(cast(MySQLTransaction, tx), deadline)
        vocabulary = Vocabulary(reader)
        where = of_scope(scope)
        said = of_query(query, vocabulary)
        if not said.is_exact and (patterns := _patterns_of_many_words(query, vocabulary)):
            loose = _Walk(reader, vocabulary, both(said.condition, where.condition))
            if not is_frequent(query, loose.newest(low, high, SAMPLE), reader):
                said = of_query(
                    query, lambda pattern: vocabulary.all_of(pattern) if pattern in patterns else vocabulary(pattern)
                )
        walk = _Walk(reader, vocabulary, both(said.condition, where.condition))
        yield from walk.found(low, high, limit, is_certain=said.is_exact, is_scoped=where.is_exact)

    def time_ranges(
        self, tx: Reading, scope: Scope, after: TimeRange | None, limit: int, *, newest_first: bool
    ) -> list[TimeRange]:
        """The next spans in which messages of the scope's time may lie, by their newest (or oldest) moment."""
        return next_time_ranges(tx, scope, after, limit, newest_first=newest_first)


@dataclass(frozen=True, slots=True)
class _IndexReader:
    """Asks the index for as long as there is time."""

    tx: MySQLTransaction
    deadline: float

    def __call__(self, sql: str, /, **values: Any) -> list[Values]:
        """All rows of a query."""
        with within_deadline(self.deadline, errors.OUT_OF_TIME, _DAMAGED) as left_s:
            return self.tx.probe(left_s, sql, **values)


@dataclass
class _Walk:
    """Goes through the messages that a condition lets through."""

    query: _IndexReader
    vocabulary: Vocabulary
    condition: Condition
    _weights: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How many messages were seen that have a word."""

    @cached_property
    def _loose(self) -> Condition:
        return without_order(self.condition)

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The words that are named, as far as any message has them."""
        named = list(dict.fromkeys((*words_of(self.condition), EVERYTHING, DISORDERED)))
        known = self.vocabulary.ids(named)
        return {word: known[word] for word in named if word in known}

    @cached_property
    def _asked(self) -> list[str]:
        """The words whose places tell what is let through."""
        lacked = (EVERYTHING,) if lacks_something(self._loose) else ()
        return [word for word in dict.fromkeys((*words_of(self._loose), *lacked)) if word in self._ids]

    def found(self, low: int, high: int, limit: int, *, is_certain: bool, is_scoped: bool) -> Iterator[Found]:
        """The messages with low <= id <= high, as the index gives them."""
        waiting: list[int] = []
        for span, places in self._spans(low >> SPAN_BITS, high >> SPAN_BITS):
            first = span << SPAN_BITS
            these = sorted((first + at for at in matching(self._loose, places)), reverse=True)
            waiting += [each for each in these if low <= each <= high]
            while len(waiting) >= limit:
                some, waiting = waiting[:limit], waiting[limit:]
                ids, is_sure = self._in_order(some)
                yield Found(ids, some[-1], is_certain and is_sure, is_scoped)
        ids, is_sure = self._in_order(waiting)
        yield Found(ids, low, is_certain and is_sure, is_scoped)

    def newest(self, low: int, high: int, count: int) -> list[int]:
        """The newest of these messages, at most so many."""
        found = next(self.found(low, high, count, is_certain=False, is_scoped=False), None)
        return [] if found is None else found.ids[:count]

    def _spans(self, low: int, high: int) -> Iterator[tuple[int, Places]]:
        """The spans that may hold a match, and the places of each word in them, from the newest down."""
        count = FIRST_SPANS
        while low <= high:
            words, _ = cover(self._loose, self._weights)
            leading = [word for word in words if word in self._ids]
            if not leading:
                return
            first = max(low, high - count + 1)
            by_span = self._read(leading, first, high)
            if by_span:
                self._read_others(leading, by_span)
            for span in sorted(by_span, reverse=True):
                yield span, by_span[span]
            high = first - 1 if by_span else self._next_span(leading, low, first)
            count = min(MOST_SPANS, 4 * count)

    def _next_span(self, words: Sequence[str], low: int, above: int) -> int:
        """The next span in which one of some words stands; one before all others if there is none."""
        listed, values = placeholders("word", [self._ids[word] for word in words])
        found = self.query(
            f"SELECT MAX(span) FROM word_places WHERE word_id IN ({listed}) AND span >= :low AND span < :above",
            low=low,
            above=above,
            **values,
        )[0][0]
        return low - 1 if found is None else int(found)

    def _read_others(self, leading: Sequence[str], by_span: dict[int, dict[str, set[int]]]) -> None:
        others = [word for word in self._asked if word not in leading]
        if not others:
            return
        spans = sorted(by_span)
        listed = "" if len(spans) > FEW_SPANS else f"AND span IN ({', '.join(map(str, spans))})"
        for span, places in self._read(others, spans[0], spans[-1], listed).items():
            if span in by_span:
                by_span[span].update(places)

    def _read(self, words: Sequence[str], first: int, last: int, among: str = "") -> dict[int, dict[str, set[int]]]:
        """The places of words in some spans."""
        named = {self._ids[word]: word for word in words}
        found: dict[int, dict[str, set[int]]] = defaultdict(dict)
        for some in chunks(list(named)):
            listed, values = placeholders("word", some)
            for word_id, span, packed in self.query(
                f"""SELECT word_id, span, places FROM word_places
                    WHERE word_id IN ({listed}) AND span BETWEEN :first AND :last {among}""",
                first=first,
                last=last,
                **values,
            ):
                found[span][named[word_id]] = unpacked_places(packed)
                self._weights[named[word_id]] += len(packed)
        return found

    def _in_order(self, ids: Sequence[int]) -> tuple[list[int], bool]:
        """Those of some messages in which the words stand in their order, and whether that is known of each."""
        if not asks_for_order(self.condition):
            return [*ids], True
        disordered = self._ids.get(DISORDERED)
        kept: set[int] = set()
        is_sure = True
        for some in chunks(ids):
            listed, values = placeholders("id", some)
            for message_id, packed in self.query(
                f"SELECT message_id, words FROM message_words WHERE message_id IN ({listed})", **values
            ):
                text = Text(packed)
                if disordered is not None and disordered in text.present:
                    is_sure = False
                    kept.add(message_id)
                elif holds(self.condition, text, self._ids):
                    kept.add(message_id)
        return [each for each in ids if each in kept], is_sure


def _patterns_of_many_words(query: Node, vocabulary: Vocabulary) -> frozenset[Pattern]:
    """What every match must have, and what stands for more words than are named at first."""
    factors: Sequence[Node] = query.children if isinstance(query, And) else (query,)
    wanted: list[Leaf] = [each for each in factors if isinstance(each, Words | Part)]
    patterns = [pattern for leaf in wanted if (pattern := pattern_of(leaf, MAX_WORD)) is not None]
    return frozenset(pattern for pattern in patterns if vocabulary(pattern) is None)
