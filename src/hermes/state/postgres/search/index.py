"""Finding messages through the full-text index.

The index has no order. So it is queried for one span of ids after the other, from the newest down; if matches turn out
to be rare, for all the rest at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from hermes.query.tree import And, Leaf, Node, Part, Words, replace_leaves
from hermes.state.engine import Coverage, Found, OutOfTime, Reading, TimeRange, Values
from hermes.state.postgres import errors
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.postgres.search.document import INCOMPLETE, MAX_WORD, NOTHING, SHIFTS, array, quote_lexeme
from hermes.state.postgres.search.expression import Expression, instance_of, of_query, of_scope, of_span
from hermes.state.postgres.search.vocabulary import Vocabulary
from hermes.state.search.scope import Scope
from hermes.state.search.time_ranges import next_time_ranges
from hermes.state.server.search.asking import SAMPLE, is_frequent, read_coverage, within_deadline
from hermes.state.server.search.word_patterns import pattern_of

FIRST_SPAN, SURE_SPAN, WIDE_SPAN = 1_024, 8_192, 131_072
"""How many ids are queried first, after how many the share of matches is known, and how many are queried together at
most."""
ENOUGH_TO_GUESS = 8
"""With so many matches, their number in a much wider span can be estimated."""
APART = 8
"""More words than this for one leaf are queried one by one: the index is slow with many alternatives."""

_STALE = """
    SELECT message_id FROM stale_index WHERE message_id <= :upto
    UNION SELECT id FROM messages WHERE uid IS NULL AND id <= :upto
    ORDER BY 1 DESC LIMIT :limit"""
_DAMAGED = (*errors.DAMAGED, *errors.MISSING)

# The sums keep the server from walking the table by id, which would read every message on the way.
_ONE = """
    SELECT message_id FROM message_words
    WHERE words @@ CAST(:tsquery AS tsquery) AND message_id + 0 BETWEEN :low AND :high
    ORDER BY message_id + 0 DESC LIMIT :limit"""
_MANY = """
    SELECT DISTINCT message_id FROM unnest(CAST(:tsqueries AS tsquery[])) AS one (tsquery), LATERAL (
        SELECT message_id FROM message_words
        WHERE words @@ one.tsquery AND message_id + 0 BETWEEN :low AND :high OFFSET 0) AS found
    ORDER BY message_id DESC LIMIT :limit"""


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """A query to the index."""

    alternatives: tuple[str, ...]
    """One of these must match; an empty tuple matches everything."""
    where: str | None
    """The scope."""
    is_certain: bool
    is_scoped: bool

    def tsqueries(self, low: int | None, high: int) -> tuple[list[str], str]:
        """The tsqueries for the spans around some ids (None: all), and one for messages that it cannot decide."""
        span = None if low is None else of_span(low, high)
        texts = [_all_of(text, self.where, span) for text in self.alternatives]
        doubtful = _all_of(quote_lexeme(INCOMPLETE) if texts else quote_lexeme(NOTHING), self.where, span)
        return [text for text in texts if text] or [_all_of(self.where, span)], doubtful


class PostgresIndex:
    """The search index of one store."""

    def coverage(self, tx: Reading, max_stale: int, /) -> Coverage:
        """Messages up to `indexed_upto` are indexed, except those that are stale or came from another program."""
        return read_coverage(tx, max_stale, _STALE)

    def candidates(
        self, tx: Reading, query: Node, scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> Iterator[Found]:
        """Yield the messages with low <= id <= high that may match, newest id first, about `limit` at a time."""
        transaction = cast(PostgresTransaction, tx)
        index_query = _index_query(transaction, query, scope, low, high, deadline)
        width = _SpanWidth(limit)
        while low <= high:
            first = max(low, width.first_below(high))
            found = _rest(transaction, index_query, low, high, limit, deadline) if width.is_everything_next else None
            if found is None:
                found = _matches(transaction, index_query, first, high, limit, deadline)
            else:
                first = low
            reached = found.lowest_complete_id(first, limit)
            yield found.down_to(reached, index_query)
            width.adjust(high - reached + 1, len(found.sure))
            low, high = max(low, found.lowest), reached - 1

    def time_ranges(
        self, tx: Reading, scope: Scope, after: TimeRange | None, limit: int, *, newest_first: bool
    ) -> list[TimeRange]:
        """The next ranges in which messages of the scope's time may lie, by their newest (or oldest) moment."""
        return next_time_ranges(tx, scope, after, limit, newest_first=newest_first)


@dataclass
class _SpanWidth:
    """The width of the next span: wide enough for as many matches as are wanted, judging by the last ones."""

    wanted: int
    span: int = FIRST_SPAN
    is_everything_next: bool = False
    """Whether matches are so rare that all other messages are queried together."""
    _seen: int = 0
    _found: int = 0

    def first_below(self, high: int) -> int:
        """The first id of the span that ends with `high`: where a wide mark begins, if the span is wide."""
        shift = max(shift for shift in SHIFTS[:2] if shift == SHIFTS[0] or 1 << shift <= 2 * self.span)
        return high - self.span >> shift << shift

    def adjust(self, seen: int, found: int) -> None:
        """Add how many ids were queried, and how many of them matched."""
        self._seen += seen
        self._found += found
        needed = self.wanted * self._seen // max(1, self._found)
        self.is_everything_next = not self.is_everything_next and self._seen > SURE_SPAN and needed > WIDE_SPAN
        # A few matches say little about how many there are further down.
        most = (8 if self._found < ENOUGH_TO_GUESS else 64) * self._seen
        self.span = min(WIDE_SPAN, max(FIRST_SPAN, min(needed, most)))


class _Matches(NamedTuple):
    """The matches in a span of the index, newest first."""

    sure: list[int]
    doubtful: list[int]
    """Messages that are not completely in the index."""
    lowest: int
    """The lowest id in the whole index."""

    def lowest_complete_id(self, first: int, limit: int) -> int:
        """The id down to which the matches are complete."""
        return max([first, *(ids[-1] for ids in (self.sure, self.doubtful) if len(ids) == limit)])

    def down_to(self, reached: int, index_query: IndexQuery) -> Found:
        """Return the matches down to an id."""
        doubtful = [each for each in self.doubtful if each >= reached]
        ids = [each for each in self.sure if each >= reached]
        if doubtful:
            ids = sorted({*ids, *doubtful}, reverse=True)
        return Found(ids, reached, index_query.is_certain and not doubtful, index_query.is_scoped)


def _index_query(
    tx: PostgresTransaction, query: Node, scope: Scope, low: int, high: int, deadline: float
) -> IndexQuery:
    """Build the index query for a query and a scope."""
    where = of_scope(scope)
    vocabulary = Vocabulary(lambda sql, **values: _query(tx, deadline, (sql, values))[0])
    leaf = _leaf_of_many_words(query)
    words = None
    if leaf is not None:
        pattern = pattern_of(leaf, MAX_WORD)
        assert pattern is not None
        words = vocabulary(pattern)
        if words is None and not _is_frequent(tx, query, where, low, high, deadline):
            words = vocabulary.all_of(pattern)
    if leaf is None or words is None or len(words) <= APART:
        each = [of_query(query, vocabulary)]
    else:
        each = [of_query(replace_leaves(query, {leaf: instance_of(leaf, word)}), vocabulary) for word in words]
    alternatives = [expression.text for expression in each if expression.text is not None]
    return IndexQuery(
        tuple(alternatives) if len(alternatives) == len(each) else (),
        where.text,
        is_certain=all(expression.is_exact for expression in each),
        is_scoped=where.is_exact,
    )


def _leaf_of_many_words(query: Node) -> Leaf | None:
    """The first leaf that every match must have, and that stands for several words."""
    factors = query.children if isinstance(query, And) else (query,)
    return next((node for node in factors if isinstance(node, Words | Part) and pattern_of(node, MAX_WORD)), None)


def _is_frequent(tx: PostgresTransaction, query: Node, where: Expression, low: int, high: int, deadline: float) -> bool:
    """Whether so many messages match that reading the newest ones finds some soon."""
    unnamed = of_query(query, lambda _: None)
    index_query = IndexQuery(
        () if unnamed.text is None else (unnamed.text,), where.text, is_certain=False, is_scoped=where.is_exact
    )
    first = max(low, high - FIRST_SPAN)
    return is_frequent(query, _matches(tx, index_query, first, high, SAMPLE, deadline).sure, tx.rows)


def _rest(
    tx: PostgresTransaction, index_query: IndexQuery, low: int, high: int, limit: int, deadline: float
) -> _Matches | None:
    """The matches among all other messages; None if there are so many that the query takes too long."""
    if not index_query.alternatives:
        return None
    within_deadline = time.monotonic() + (deadline - time.monotonic()) / 2
    try:
        return _matches(tx, index_query, low, high, limit, within_deadline, is_rest=True)
    except OutOfTime:
        return None


def _matches(
    tx: PostgresTransaction,
    index_query: IndexQuery,
    low: int,
    high: int,
    limit: int,
    deadline: float,
    *,
    is_rest: bool = False,
) -> _Matches:
    tsqueries, doubtful = index_query.tsqueries(None if is_rest else low, high)
    span = {"low": low, "high": high, "limit": limit}
    sure, unsure, ((lowest,),) = _query(
        tx,
        deadline,
        (_ONE, {"tsquery": tsqueries[0], **span})
        if len(tsqueries) == 1
        else (_MANY, {"tsqueries": array(tsqueries), **span}),
        (_ONE, {"tsquery": doubtful, **span}),
        ("SELECT MIN(message_id) FROM message_words", {}),
    )
    return _Matches([row[0] for row in sure], [row[0] for row in unsure], high if lowest is None else lowest)


def _query(tx: PostgresTransaction, deadline: float, *queries: tuple[str, dict[str, Any]]) -> list[list[Values]]:
    """Query the index within the time limit."""
    with within_deadline(deadline, (errors.QUERY_CANCELED,), _DAMAGED) as left_s:
        return tx.probe(left_s, *queries)


def _all_of(*parts: str | None) -> str:
    return " & ".join(part for part in parts if part is not None)
