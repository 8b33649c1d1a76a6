"""Finding messages through the full-text index.

The index has no order. So it is asked about one span of ids after the other, from the newest down; once matches turn
out to be rare, about all the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from hermes.query.tree import And, Leaf, Node, Part, Words, replaced
from hermes.state.engine import Coverage, Found, OutOfTime, Reading, Values, Zone
from hermes.state.postgres import faults
from hermes.state.postgres.expression import Expression, instance_of, of_query, of_scope, of_span
from hermes.state.postgres.session import PostgresSession
from hermes.state.postgres.vector import INCOMPLETE, MAX_WORD, NOTHING, SHIFTS, array, quoted
from hermes.state.postgres.vocabulary import Vocabulary
from hermes.state.scope import Scope
from hermes.state.server.coverage import coverage_of
from hermes.state.server.patience import patience
from hermes.state.server.patterns import pattern_of
from hermes.state.server.sample import SAMPLE, is_frequent
from hermes.state.zones import next_zones

FIRST_SPAN, SURE_SPAN, WIDE_SPAN = 1_024, 8_192, 131_072
"""How many ids are looked at first, after how many it can be said how rare matches are, and how many are looked at
together at most."""
APART = 8
"""More words than this for one leaf are looked for one by one: the index is slow at choices among many."""

_STALE = """
    SELECT message_id FROM stale_index WHERE message_id <= :upto
    UNION SELECT id FROM messages WHERE uid IS NULL AND id <= :upto
    ORDER BY 1 DESC LIMIT :limit"""
_DAMAGED = (*faults.DAMAGED, *faults.MISSING)

# The sums keep the server from walking the table by id, and reading every message on the way.
_ONE = """
    SELECT message_id FROM message_words
    WHERE words @@ CAST(:ask AS tsquery) AND message_id + 0 BETWEEN :low AND :high
    ORDER BY message_id + 0 DESC LIMIT :limit"""
_MANY = """
    SELECT DISTINCT message_id FROM unnest(CAST(:asks AS tsquery[])) AS one (ask), LATERAL (
        SELECT message_id FROM message_words
        WHERE words @@ one.ask AND message_id + 0 BETWEEN :low AND :high OFFSET 0) AS found
    ORDER BY message_id DESC LIMIT :limit"""


@dataclass(frozen=True, slots=True)
class Question:
    """What the index is asked."""

    alternatives: tuple[str, ...]
    """One of these; none: everything."""
    where: str | None
    """The scope."""
    is_certain: bool
    is_scoped: bool

    def asks(self, low: int | None, high: int) -> tuple[list[str], str]:
        """What to ask about the spans around some ids (None: all), and which messages cannot be judged by it."""
        span = None if low is None else of_span(low, high)
        said = [_together(text, self.where, span) for text in self.alternatives]
        doubtful = _together(quoted(INCOMPLETE) if said else quoted(NOTHING), self.where, span)
        return [text for text in said if text] or [_together(self.where, span)], doubtful


class PostgresIndex:
    """The index of one store."""

    def coverage(self, tx: Reading, max_stale: int, /) -> Coverage:
        """Which messages it knows; what it does not is in no batch yet, or was changed since."""
        return coverage_of(tx, max_stale, _STALE)

    def candidates(
        self, tx: Reading, query: Node, scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> Iterator[Found]:
        """The messages with low <= id <= high that may match, newest id first, about `limit` at a time."""
        session = cast(PostgresSession, tx)
        (((lowest,),),) = _ask(session, deadline, ("SELECT MIN(message_id) FROM message_words", {}))
        if lowest is None:
            return
        low = max(low, lowest)
        question = _question(session, query, scope, low, high, deadline)
        pace = _Pace(limit)
        while low <= high:
            first = max(low, high - pace.span >> SHIFTS[0] << SHIFTS[0])
            found = _rest(session, question, low, high, limit, deadline) if pace.is_everything_next else None
            if found is None:
                found = _matches(session, question, first, high, limit, deadline)
            else:
                first = low
            reached = found.reached(first, limit)
            yield found.down_to(reached, question)
            pace.go_on(high - reached + 1, len(found.sure))
            high = reached - 1

    def zones(self, tx: Reading, scope: Scope, after: Zone | None, limit: int, *, newest_first: bool) -> list[Zone]:
        """The next spans in which messages of the scope's time may lie, by their newest (or oldest) moment."""
        return next_zones(tx, scope, after, limit, newest_first=newest_first)


@dataclass
class _Pace:
    """How wide the next span is: wide enough to hold as many matches as are wanted, as far as the last ones tell."""

    wanted: int
    span: int = FIRST_SPAN
    is_everything_next: bool = False
    """Whether matches are so rare that all other messages are asked for together."""
    _seen: int = 0
    _found: int = 0

    def go_on(self, seen: int, found: int) -> None:
        """Hear how many ids were looked at, and how many of them matched."""
        self._seen += seen
        self._found += found
        needed = self.wanted * self._seen // max(1, self._found)
        self.is_everything_next = not self.is_everything_next and self._seen > SURE_SPAN and needed > WIDE_SPAN
        self.span = min(WIDE_SPAN, max(FIRST_SPAN, min(needed, 8 * self._seen)))


class _Matches(NamedTuple):
    """What a span of the index holds, newest first."""

    sure: list[int]
    doubtful: list[int]
    """Messages of which not everything is in the index."""

    def reached(self, first: int, limit: int) -> int:
        """Down to which id this is everything."""
        return max([first, *(ids[-1] for ids in self if len(ids) == limit)])

    def down_to(self, reached: int, question: Question) -> Found:
        """As the index gives them."""
        doubtful = [each for each in self.doubtful if each >= reached]
        ids = [each for each in self.sure if each >= reached]
        if doubtful:
            ids = sorted({*ids, *doubtful}, reverse=True)
        return Found(ids, reached, question.is_certain and not doubtful, question.is_scoped)


def _question(session: PostgresSession, query: Node, scope: Scope, low: int, high: int, deadline: float) -> Question:
    """What the index is asked for the sake of a query and a scope."""
    where = of_scope(scope)
    vocabulary = Vocabulary(lambda sql, **values: _ask(session, deadline, (sql, values))[0])
    leaf = _leaf_of_many_words(query)
    words = None
    if leaf is not None:
        pattern = pattern_of(leaf, MAX_WORD)
        assert pattern is not None
        words = vocabulary(pattern)
        if words is None and not _is_frequent(session, query, where, low, high, deadline):
            words = vocabulary.all_of(pattern)
    if leaf is None or words is None or len(words) <= APART:
        each = [of_query(query, vocabulary)]
    else:
        each = [of_query(replaced(query, {leaf: instance_of(leaf, word)}), vocabulary) for word in words]
    alternatives = [expression.text for expression in each if expression.text is not None]
    return Question(
        tuple(alternatives) if len(alternatives) == len(each) else (),
        where.text,
        is_certain=all(expression.is_exact for expression in each),
        is_scoped=where.is_exact,
    )


def _leaf_of_many_words(query: Node) -> Leaf | None:
    """The first leaf that every match must have, and that stands for several words."""
    factors = query.children if isinstance(query, And) else (query,)
    return next((node for node in factors if isinstance(node, Words | Part) and pattern_of(node, MAX_WORD)), None)


def _is_frequent(
    session: PostgresSession, query: Node, where: Expression, low: int, high: int, deadline: float
) -> bool:
    """Whether so many messages match that reading the newest ones finds some soon."""
    unnamed = of_query(query, lambda _: None)
    question = Question(
        () if unnamed.text is None else (unnamed.text,), where.text, is_certain=False, is_scoped=where.is_exact
    )
    first = max(low, high - FIRST_SPAN)
    return is_frequent(query, _matches(session, question, first, high, SAMPLE, deadline).sure, session.rows)


def _rest(
    session: PostgresSession, question: Question, low: int, high: int, limit: int, deadline: float
) -> _Matches | None:
    """The matches among all other messages; None if there are so many of them that it takes too long to tell."""
    if not question.alternatives:
        return None
    patience = time.monotonic() + (deadline - time.monotonic()) / 2
    try:
        return _matches(session, question, low, high, limit, patience, is_rest=True)
    except OutOfTime:
        return None


def _matches(
    session: PostgresSession,
    question: Question,
    low: int,
    high: int,
    limit: int,
    deadline: float,
    *,
    is_rest: bool = False,
) -> _Matches:
    asks, doubtful = question.asks(None if is_rest else low, high)
    span = {"low": low, "high": high, "limit": limit}
    sure, unsure = _ask(
        session,
        deadline,
        (_ONE, {"ask": asks[0], **span}) if len(asks) == 1 else (_MANY, {"asks": array(asks), **span}),
        (_ONE, {"ask": doubtful, **span}),
    )
    return _Matches([row[0] for row in sure], [row[0] for row in unsure])


def _ask(session: PostgresSession, deadline: float, *queries: tuple[str, dict[str, Any]]) -> list[list[Values]]:
    """Ask the index for as long as there is time."""
    with patience(deadline, (faults.QUERY_CANCELED,), _DAMAGED) as left_s:
        return session.probe(left_s, *queries)


def _together(*parts: str | None) -> str:
    return " & ".join(part for part in parts if part is not None)
