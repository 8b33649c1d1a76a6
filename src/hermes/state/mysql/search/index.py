"""Finding messages through the full-text index.

The index has, for each word and span, the messages with that word. The newest matches are found by walking down the
spans of the rarest word that a match must have; the other words are read for those spans only.
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
from hermes.state.mysql.search.evaluation import Places, cover, find_matching, holds
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
"""How many spans are read first, and together at most."""
FEW_SPANS = 32
"""Up to this many spans are listed one by one."""

_STALE = """
    SELECT message_id FROM stale_index
    WHERE message_id <= COALESCE((SELECT CAST(NULLIF(value, '') AS SIGNED) FROM state_meta WHERE "key" = :upto), 0)
    ORDER BY message_id DESC LIMIT :limit"""
_DAMAGED = (*errors.DAMAGED, *errors.MISSING)


class MySQLIndex:
    """The search index of one store."""

    def coverage(self, tx: Reading, max_stale: int, /) -> Coverage:
        """Messages up to `indexed_upto` are indexed, except those in `stale_index`."""
        return read_coverage(tx, max_stale, _STALE)

    def candidates(
        self, tx: Reading, query: Node, scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> Iterator[Found]:
        """Yield the messages with low <= id <= high that may match, newest id first, about `limit` at a time."""
        reader = _IndexReader(cast(MySQLTransaction, tx), deadline)
        vocabulary = Vocabulary(reader)
        where = of_scope(scope)
        terms = of_query(query, vocabulary)
        if not terms.is_exact and (patterns := _patterns_of_many_words(query, vocabulary)):
            loose = _Walk(reader, vocabulary, both(terms.condition, where.condition))
            if not is_frequent(query, loose.newest(low, high, SAMPLE), reader):
                terms = of_query(
                    query, lambda pattern: vocabulary.all_of(pattern) if pattern in patterns else vocabulary(pattern)
                )
        walk = _Walk(reader, vocabulary, both(terms.condition, where.condition))
        yield from walk.found(low, high, limit, is_certain=terms.is_exact, is_scoped=where.is_exact)

    def time_ranges(
        self, tx: Reading, scope: Scope, after: TimeRange | None, limit: int, *, newest_first: bool
    ) -> list[TimeRange]:
        """The next ranges in which messages of the scope's time may lie, by their newest (or oldest) moment."""
        return next_time_ranges(tx, scope, after, limit, newest_first=newest_first)


@dataclass(frozen=True, slots=True)
class _IndexReader:
    """Queries the index within the time limit."""

    tx: MySQLTransaction
    deadline: float

    def __call__(self, sql: str, /, **values: Any) -> list[Values]:
        """All rows of a query."""
        with within_deadline(self.deadline, errors.OUT_OF_TIME, _DAMAGED) as left_s:
            return self.tx.probe(left_s, sql, **values)


@dataclass
class _Walk:
    """Walks through the messages that match a condition."""

    query: _IndexReader
    vocabulary: Vocabulary
    condition: Condition
    _weights: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How many messages with each word were read."""

    @cached_property
    def _loose(self) -> Condition:
        return without_order(self.condition)

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The ids of the words in the condition, except those that no message has."""
        words = list(dict.fromkeys((*words_of(self.condition), EVERYTHING, DISORDERED)))
        known = self.vocabulary.ids(words)
        return {word: known[word] for word in words if word in known}

    @cached_property
    def _deciding_words(self) -> list[str]:
        """The words whose positions decide which messages match."""
        lacked = (EVERYTHING,) if lacks_something(self._loose) else ()
        return [word for word in dict.fromkeys((*words_of(self._loose), *lacked)) if word in self._ids]

    def found(self, low: int, high: int, limit: int, *, is_certain: bool, is_scoped: bool) -> Iterator[Found]:
        """Yield the messages with low <= id <= high, as the index has them."""
        waiting: list[int] = []
        for span, places in self._spans(low >> SPAN_BITS, high >> SPAN_BITS):
            first = span << SPAN_BITS
            these = sorted((first + at for at in find_matching(self._loose, places)), reverse=True)
            waiting += [each for each in these if low <= each <= high]
            while len(waiting) >= limit:
                some, waiting = waiting[:limit], waiting[limit:]
                ids, is_sure = self._in_order(some)
                yield Found(ids, some[-1], is_certain and is_sure, is_scoped)
        ids, is_sure = self._in_order(waiting)
        yield Found(ids, low, is_certain and is_sure, is_scoped)

    def newest(self, low: int, high: int, count: int) -> list[int]:
        """The newest of these messages, at most `count`."""
        found = next(self.found(low, high, count, is_certain=False, is_scoped=False), None)
        return [] if found is None else found.ids[:count]

    def _spans(self, low: int, high: int) -> Iterator[tuple[int, Places]]:
        """Yield the spans that may contain a match, with the positions of each word, from the newest down."""
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
        """The next lower span with one of some words; `low - 1` if there is none."""
        listed, values = placeholders("word", [self._ids[word] for word in words])
        found = self.query(
            f"SELECT MAX(span) FROM word_places WHERE word_id IN ({listed}) AND span >= :low AND span < :above",
            low=low,
            above=above,
            **values,
        )[0][0]
        return low - 1 if found is None else int(found)

    def _read_others(self, leading: Sequence[str], by_span: dict[int, dict[str, set[int]]]) -> None:
        others = [word for word in self._deciding_words if word not in leading]
        if not others:
            return
        spans = sorted(by_span)
        listed = "" if len(spans) > FEW_SPANS else f"AND span IN ({', '.join(map(str, spans))})"
        for span, places in self._read(others, spans[0], spans[-1], listed).items():
            if span in by_span:
                by_span[span].update(places)

    def _read(self, words: Sequence[str], first: int, last: int, among: str = "") -> dict[int, dict[str, set[int]]]:
        """The positions of words in some spans."""
        by_id = {self._ids[word]: word for word in words}
        found: dict[int, dict[str, set[int]]] = defaultdict(dict)
        for some in chunks(list(by_id)):
            listed, values = placeholders("word", some)
            for word_id, span, packed in self.query(
                f"""SELECT word_id, span, places FROM word_places
                    WHERE word_id IN ({listed}) AND span BETWEEN :first AND :last {among}""",
                first=first,
                last=last,
                **values,
            ):
                found[span][by_id[word_id]] = unpacked_places(packed)
                self._weights[by_id[word_id]] += len(packed)
        return found

    def _in_order(self, ids: Sequence[int]) -> tuple[list[int], bool]:
        """The messages in which the words are in the right order, and whether that is certain for each."""
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
    """The patterns that every match must have, and that stand for more words than are listed at first."""
    factors: Sequence[Node] = query.children if isinstance(query, And) else (query,)
    wanted: list[Leaf] = [each for each in factors if isinstance(each, Words | Part)]
    patterns = [pattern for leaf in wanted if (pattern := pattern_of(leaf, MAX_WORD)) is not None]
    return frozenset(pattern for pattern in patterns if vocabulary(pattern) is None)
