"""Finding messages through the two full-text indexes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import cast

import apsw

from hermes.query.match import Document, matches
from hermes.query.tree import And, Node, Not, Or, Part, Words, all_leaves
from hermes.state.engine import Coverage, Found, IndexDamaged, OutOfTime, Reading, TimeRange
from hermes.state.indexing.indexed_text import search_text
from hermes.state.search.scope import Scope
from hermes.state.search.time_ranges import next_time_ranges
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.search.expression import (
    EVERYTHING,
    combine,
    scope_expression,
    trigram_expression,
    word_expression,
)
from hermes.state.sqlite.search.rebuild import DAMAGE

STEPS_BETWEEN_LOOKS = 50
"""How often SQLite checks the clock: FTS5 takes one step for each page that it reads."""

CHUNK = 2_000
SHORT_PREFIX, SHORT_PREFIX_S, PREFIX_S = 3, 0.001, 0.003
"""How long FTS5 may take to collect the words with a prefix before the trigram index is used instead; less for a
short prefix, because many words probably begin with it."""
SAMPLE = 128
READING_COST = 3_000
"""FTS5's work grows with the share of messages that match, that of reading with its inverse; both cost the same where
the share squared, times the number of messages, is this."""
UNLIMITED = -1


class SqliteIndex:
    """The search index of one store."""

    def coverage(self, tx: Reading, max_stale: int, /) -> Coverage:
        """Messages up to `indexed_upto` are indexed, except those that are stale or came from another program."""
        view = cast(View, tx)
        upto = index_state.indexed_upto(view) if index_state.has_current_format(view) else 0
        stale = view.rows(
            "SELECT message_id FROM stale_index WHERE message_id <= :upto ORDER BY message_id DESC LIMIT :limit",
            upto=upto,
            limit=max_stale,
        )
        # A message from another program has no uid yet. In one query with the others, or in order, SQLite would read
        # the whole table instead of an index that is nearly empty.
        foreign = view.rows("SELECT id FROM messages WHERE uid IS NULL LIMIT :limit", limit=max_stale)
        loose = sorted({row[0] for row in (*stale, *foreign) if row[0] <= upto}, reverse=True)
        return Coverage(upto, tuple(loose[:max_stale]), index_state.epoch(view))

    def candidates(
        self, tx: Reading, query: Node, scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> Iterator[Found]:
        """Yield the messages with low <= id <= high that may match, newest id first, about `limit` at a time."""
        view = cast(View, tx)
        patience = inf
        prefixes = [leaf.words[-1] for leaf in all_leaves(query) if isinstance(leaf, Words) and leaf.prefix]
        shortest = min(map(len, prefixes), default=0)
        if 0 < shortest < 3 and _is_better_read(view, query, scope, low, high):
            query = _without_prefixes(query)
        elif shortest:
            patience = SHORT_PREFIX_S if shortest <= SHORT_PREFIX else PREFIX_S
        while low <= high:
            try:
                with _until(view, deadline, patience):
                    found = _find(view, query, scope, low, high, limit)
            except OutOfTime:
                if patience == inf or time.monotonic() > deadline:
                    raise
                # So many words have this prefix that reading messages is faster.
                query, patience = _without_prefixes(query), inf
                continue
            yield found
            high = found.reached - 1

    def time_ranges(
        self, tx: Reading, scope: Scope, after: TimeRange | None, limit: int, *, newest_first: bool
    ) -> list[TimeRange]:
        """The next ranges in which messages of the scope's time may lie, by their newest (or oldest) moment."""
        return next_time_ranges(tx, scope, after, limit, newest_first=newest_first)


def _find(view: View, query: Node, scope: Scope, low: int, high: int, limit: int) -> Found:
    terms, where = word_expression(query), scope_expression(scope)
    words = combine(terms, where)
    parts = trigram_expression(query)
    if parts is None:
        ids = _matches(view, "messages_fts", words or EVERYTHING, low, high, limit)
    elif words is None:
        ids = _matches(view, "messages_fts_trigram", parts, low, high, limit)
    else:
        ids, reached = _both(view, words, parts, low, high)
        return Found(ids, reached, is_certain=False, is_scoped=where.is_exact)
    reached = ids[-1] if len(ids) == limit else low
    return Found(ids, reached, terms.is_exact and parts is None, where.is_exact)


def _is_better_read(view: View, query: Node, scope: Scope, low: int, high: int) -> bool:
    """Whether so many words begin with one or two letters that reading messages finds them faster."""
    words = combine(word_expression(_without_prefixes(query)), scope_expression(scope)) or EVERYTHING
    sample = _matches(view, "messages_fts", words, low, high, SAMPLE)
    rows = view.rows(
        f"SELECT role, content, tool_name, tool_calls FROM messages WHERE id IN ({', '.join(map(str, sample))})"
    )
    share = sum(matches(query, Document(search_text(*row))) for row in rows) / max(1, len(rows))
    return len(sample) < SAMPLE or share**2 * (high - low) > READING_COST


def _without_prefixes(node: Node) -> Node:
    """Return a tree that matches at least as much, with parts instead of prefixes."""
    match node:
        case Words(words, _, prefix) if prefix:
            part = Part(words[-1])
            return And((Words(words[:-1], " ".join(words[:-1])), part)) if len(words) > 1 else part
        case Not(child):
            return Not(_without_prefixes(child))
        case And(children):
            return And(tuple(map(_without_prefixes, children)))
        case Or(children):
            return Or(tuple(map(_without_prefixes, children)))
        case _:
            return node


def _both(view: View, words: str, parts: str, low: int, high: int) -> tuple[list[int], int]:
    """Ids that both indexes have: the index with fewer matches leads; the other is queried for the same range only."""
    by_words = _matches(view, "messages_fts", words, low, high, CHUNK)
    if len(by_words) < CHUNK:
        return by_words, low
    by_parts = _matches(view, "messages_fts_trigram", parts, low, high, CHUNK)
    lowest = by_parts[-1] if len(by_parts) == CHUNK else low
    if lowest < by_words[-1]:
        rest = set(_matches(view, "messages_fts", words, lowest, high, UNLIMITED)) if by_parts else set()
        return [each for each in by_parts if each in rest], lowest
    also = set(_matches(view, "messages_fts_trigram", parts, by_words[-1], high, UNLIMITED))
    return [each for each in by_words if each in also], by_words[-1]


def _matches(view: View, table: str, expression: str, low: int, high: int, limit: int) -> list[int]:
    rows = view.rows(
        f"""SELECT rowid FROM {table} WHERE {table} MATCH :expression AND rowid BETWEEN :low AND :high
            ORDER BY rowid DESC LIMIT :limit""",
        expression=expression,
        low=low,
        high=high,
        limit=limit,
    )
    return [row[0] for row in rows]


@contextmanager
def _until(view: View, deadline: float, patience_s: float) -> Iterator[None]:
    """Stop a query at its deadline or after too much work, and raise `IndexDamaged` if the index caused a failure."""
    connection = view.connection
    # Work is measured in processor time, so that a busy machine does not change the result.
    work_until = time.thread_time() + patience_s

    def is_late() -> bool:
        return time.monotonic() > deadline

    def is_over() -> bool:
        return time.monotonic() > deadline or time.thread_time() > work_until

    connection.set_progress_handler(is_late if patience_s == inf else is_over, STEPS_BETWEEN_LOOKS)
    try:
        yield
    except apsw.InterruptError:
        raise OutOfTime from None
    except DAMAGE as exc:
        connection.set_progress_handler(None)
        if isinstance(exc, apsw.SQLError) and _can_be_queried(view):
            raise
        raise IndexDamaged from exc
    finally:
        connection.set_progress_handler(None)


def _can_be_queried(view: View) -> bool:
    """Whether both indexes exist and can be queried."""
    try:
        for table in index_state.TABLES:
            _matches(view, table, '"abc"', 1, 1, 1)
    except apsw.Error:
        return False
    return True
