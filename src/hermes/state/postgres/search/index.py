"""Finding messages through the full-text index.

The index has no order. So it is queried for one span of ids after the other, from the newest down; if matches turn out
to be rare, for all the rest at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import cast

from hermes.query.tree import Node
from hermes.state.engine import Coverage, Found, OutOfTime, Reading, TimeRange
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.postgres.search.index_query import IndexQuery, Matches, build_index_query, read_matches
from hermes.state.postgres.search.span_width import SpanWidth
from hermes.state.postgres.search.term_lists import PostgresTermLists
from hermes.state.search.scope import Scope
from hermes.state.search.time_ranges import next_time_ranges
from hermes.state.server.search.asking import read_coverage

_UPTO = """COALESCE((SELECT CAST(NULLIF(value, '') AS bigint) FROM state_meta WHERE "key" = :upto), 0)"""
_STALE = f"""
    SELECT message_id FROM stale_index WHERE message_id <= {_UPTO}
    UNION SELECT id FROM messages WHERE uid IS NULL AND id <= {_UPTO}
    ORDER BY 1 DESC LIMIT :limit"""


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
        index_query = build_index_query(transaction, query, scope, low, high, deadline)
        width = SpanWidth(limit)
        while low <= high:
            first = max(low, width.first_below(high))
            found = _rest(transaction, index_query, low, high, limit, deadline) if width.is_everything_next else None
            if found is None:
                found = read_matches(transaction, index_query, first, high, limit, deadline)
            else:
                first = low
            reached = found.lowest_complete_id(first, limit)
            yield found.down_to(reached, index_query)
            width.adjust(high - reached + 1, len(found.sure))
            low, high = max(low, found.lowest), reached - 1

    def term_lists(
        self, tx: Reading, terms: Sequence[Node], scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> PostgresTermLists:
        """Return the lists of terms with low <= id <= high; each is read until it has about `limit` messages."""
        return PostgresTermLists(cast(PostgresTransaction, tx), terms, scope, low, high, limit, deadline)

    def time_ranges(
        self, tx: Reading, scope: Scope, after: TimeRange | None, limit: int, *, newest_first: bool
    ) -> list[TimeRange]:
        """The next ranges in which messages of the scope's time may lie, by their newest (or oldest) moment."""
        return next_time_ranges(tx, scope, after, limit, newest_first=newest_first)


def _rest(
    tx: PostgresTransaction, index_query: IndexQuery, low: int, high: int, limit: int, deadline: float
) -> Matches | None:
    """The matches among all other messages; None if there are so many that the query takes too long."""
    if not index_query.alternatives:
        return None
    within_deadline = time.monotonic() + (deadline - time.monotonic()) / 2
    try:
        return read_matches(tx, index_query, low, high, limit, within_deadline, is_rest=True)
    except OutOfTime:
        return None
