"""A query to the full-text index, built from a query tree and a scope, and its matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from hermes.query.tree import And, Leaf, Node, Part, Words, replace_leaves
from hermes.state.engine import Found, Values
from hermes.state.postgres import errors
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.postgres.search.document import INCOMPLETE, MAX_WORD, NOTHING, array, quote_lexeme
from hermes.state.postgres.search.expression import Expression, instance_of, of_query, of_scope, of_span
from hermes.state.postgres.search.span_width import FIRST_SPAN
from hermes.state.postgres.search.vocabulary import Vocabulary
from hermes.state.search.scope import Scope
from hermes.state.server.search.asking import SAMPLE, is_frequent, within_deadline
from hermes.state.server.search.word_patterns import pattern_of

APART = 8
"""More words than this for one leaf are queried one by one: the index is slow with many alternatives."""

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

    @property
    def sought(self) -> str:
        """The tsquery without a span; empty if everything matches."""
        words = " | ".join(self.alternatives)
        return _all_of(f"({words})" if words else None, self.where)

    def tsqueries(self, low: int | None, high: int) -> tuple[list[str], str]:
        """The tsqueries for the spans around some ids (None: all), and one for messages that it cannot decide."""
        span = None if low is None else of_span(low, high)
        texts = [_all_of(text, self.where, span) for text in self.alternatives]
        doubtful = _all_of(quote_lexeme(INCOMPLETE) if texts else quote_lexeme(NOTHING), self.where, span)
        return [text for text in texts if text] or [_all_of(self.where, span)], doubtful


class Matches(NamedTuple):
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


def build_index_query(
    tx: PostgresTransaction, query: Node, scope: Scope, low: int, high: int, deadline: float
) -> IndexQuery:
    """Build the index query for a query and a scope."""
    where = of_scope(scope)
    vocabulary = Vocabulary(lambda sql, **values: query_index(tx, deadline, (sql, values))[0])
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


def doubtful_messages(scope: Scope) -> str:
    """Return the tsquery for messages of a scope that are not completely in the index."""
    return _all_of(quote_lexeme(INCOMPLETE), of_scope(scope).text)


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
    return is_frequent(query, read_matches(tx, index_query, first, high, SAMPLE, deadline).sure, tx.rows)


def read_matches(
    tx: PostgresTransaction,
    index_query: IndexQuery,
    low: int,
    high: int,
    limit: int,
    deadline: float,
    *,
    is_rest: bool = False,
) -> Matches:
    tsqueries, doubtful = index_query.tsqueries(None if is_rest else low, high)
    span = {"low": low, "high": high, "limit": limit}
    sure, unsure, ((lowest,),) = query_index(
        tx,
        deadline,
        (_ONE, {"tsquery": tsqueries[0], **span})
        if len(tsqueries) == 1
        else (_MANY, {"tsqueries": array(tsqueries), **span}),
        (_ONE, {"tsquery": doubtful, **span}),
        ("SELECT MIN(message_id) FROM message_words", {}),
    )
    return Matches([row[0] for row in sure], [row[0] for row in unsure], high if lowest is None else lowest)


def query_index(tx: PostgresTransaction, deadline: float, *queries: tuple[str, dict[str, Any]]) -> list[list[Values]]:
    """Query the index within the time limit."""
    with within_deadline(deadline, (errors.QUERY_CANCELED,), _DAMAGED) as left_s:
        return tx.probe(left_s, *queries)


def _all_of(*parts: str | None) -> str:
    return " & ".join(part for part in parts if part is not None)
