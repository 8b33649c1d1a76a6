"""The messages with each of several terms, newest id first: every round trip reads the next span of all of them."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hermes.query.tree import Node
from hermes.state.engine import Found, OutOfTime
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.postgres.search.document import array
from hermes.state.postgres.search.expression import of_span
from hermes.state.postgres.search.index_query import (
    IndexQuery,
    Matches,
    build_index_query,
    doubtful_messages,
    query_index,
)
from hermes.state.postgres.search.span_width import SpanWidth
from hermes.state.search.scope import Scope

# The sums keep the server from walking the table by id, which would read every message on the way.
_LISTS = """
    SELECT array_to_string(ARRAY(
        SELECT message_id FROM message_words
        WHERE words @@ one.sought {condition} AND message_id + 0 BETWEEN one.low AND one.high
        ORDER BY message_id + 0 DESC LIMIT :limit), ' ')
    FROM unnest(CAST(:sought AS tsquery[]), CAST(:lows AS bigint[]), CAST(:highs AS bigint[]){spans})
        WITH ORDINALITY AS one (sought, low, high{name}, number)
    ORDER BY number"""
# The server finds a word in a span faster if the span has a condition of its own.
_SPANS = _LISTS.format(condition="AND words @@ one.span", spans=", CAST(:spans AS tsquery[])", name=", span")
_REST = _LISTS.format(condition="", spans="", name="")


class _Range(NamedTuple):
    """What a round trip asks for one term: the ids of a span, or of all older messages."""

    sought: str
    low: int
    high: int
    is_rest: bool


@dataclass
class _TermList:
    """How far the list of one term was read."""

    query: IndexQuery
    low: int
    high: int
    width: SpanWidth

    def next_range(self, *, with_rest: bool) -> _Range:
        is_rest = with_rest and self.width.is_everything_next and bool(self.query.alternatives)
        first = self.low if is_rest else max(self.low, self.width.first_below(self.high))
        return _Range(self.query.sought, first, self.high, is_rest)


class PostgresTermLists:
    """The lists of the terms of one question."""

    def __init__(
        self,
        tx: PostgresTransaction,
        terms: Sequence[Node],
        scope: Scope,
        low: int,
        high: int,
        limit: int,
        deadline: float,
    ) -> None:
        self._tx, self._limit, self._deadline = tx, limit, deadline
        queries = [build_index_query(tx, term, scope, low, high, deadline) for term in terms]
        self._lists = [_TermList(query, low, high, SpanWidth(limit)) for query in queries]
        self._high = high
        self._doubtful_query = doubtful_messages(scope)
        self._doubtful: list[int] = []
        """Messages that are not completely in the index."""
        self._doubtful_from = high + 1
        """The id from which all of them are known."""
        self._lowest: int | None = None
        """The lowest id in the whole index."""

    def read(self, numbers: Collection[int], /) -> dict[int, Found]:
        """Return the next messages for each of these terms, by its number; nothing for a list that has ended."""
        open_lists = {at: self._lists[at] for at in numbers if self._lists[at].low <= self._lists[at].high}
        if not open_lists:
            return {}
        ranges = {at: each.next_range(with_rest=True) for at, each in open_lists.items()}
        try:
            matches = self._matches(ranges)
        except OutOfTime:
            if not any(each.is_rest for each in ranges.values()):
                raise
            ranges = {at: each.next_range(with_rest=False) for at, each in open_lists.items()}
            matches = self._matches(ranges)
        return {at: self._advance(open_lists[at], ranges[at], matches[at]) for at in ranges}

    def _advance(self, one: _TermList, asked: _Range, sure: list[int]) -> Found:
        doubtful = [each for each in self._doubtful if asked.low <= each <= asked.high]
        found = Matches(sure, doubtful, one.low if self._lowest is None else self._lowest)
        reached = max(found.lowest_complete_id(asked.low, self._limit), self._doubtful_from)
        one.width.adjust(asked.high - reached + 1, len(sure))
        one.low, one.high = max(one.low, found.lowest), reached - 1
        return found.down_to(reached, one.query)

    def _matches(self, ranges: dict[int, _Range]) -> dict[int, list[int]]:
        """Return the matches of each term in its range, and read the doubtful messages of all ranges once."""
        asked = list(ranges.values())
        first, is_rest = min(each.low for each in asked), any(each.is_rest for each in asked)
        found: list[list[int]] = []
        while first < self._doubtful_from and (not found or self._doubtful_from > min(each.high for each in asked)):
            unknown = _Range(self._doubtful_query, first, self._doubtful_from - 1, is_rest)
            *lists, doubtful = self._query([unknown] if found else [*asked, unknown])
            found = found or lists
            self._doubtful += doubtful
            self._doubtful_from = doubtful[-1] if len(doubtful) == self._limit else first
        return dict(zip(ranges, found or self._query(asked), strict=True))

    def _query(self, ranges: Sequence[_Range]) -> list[list[int]]:
        """Return the newest matches of each range, in one round trip."""
        rest = {at: each for at, each in enumerate(ranges) if each.is_rest}
        spans = {at: each for at, each in enumerate(ranges) if not each.is_rest}
        statements = [_statement(each, self._limit) for each in (rest, spans) if each]
        if self._lowest is None:
            statements.append(("SELECT MIN(message_id) FROM message_words", {}))
        deadline = self._deadline
        if rest:  # a term that turns out to be common is read by spans after all
            deadline = time.monotonic() + (deadline - time.monotonic()) / 2
        results = query_index(self._tx, deadline, *statements)
        if self._lowest is None:
            ((lowest,),) = results.pop()
            self._lowest = self._high if lowest is None else lowest
        lists = [[int(each) for each in row[0].split()] for rows in results for row in rows]
        return [ids for _, ids in sorted(zip([*rest, *spans], lists, strict=True))]


def _statement(ranges: Mapping[int, _Range], limit: int) -> tuple[str, dict[str, Any]]:
    """Return the statement that reads some ranges: either spans of ids, or all that is older."""
    some = list(ranges.values())
    is_rest = some[0].is_rest
    spans = {span: "" if is_rest else of_span(*span) for span in {(each.low, each.high) for each in some}}
    values = {
        "sought": array(each.sought or spans[each.low, each.high] for each in some),
        "lows": f"{{{','.join(str(each.low) for each in some)}}}",
        "highs": f"{{{','.join(str(each.high) for each in some)}}}",
        "limit": limit,
    }
    if is_rest:
        return _REST, values
    return _SPANS, {**values, "spans": array(spans[each.low, each.high] for each in some)}
