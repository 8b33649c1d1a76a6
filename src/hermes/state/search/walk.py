"""Read the messages that match a query, highest id first, until the time limit.

Most come from the index. Unindexed messages are read and matched here, and merged in order. If the index is damaged,
all messages are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from hermes.query.match import Document, matches
from hermes.query.rank import HEAD
from hermes.query.tree import Node
from hermes.state.engine import Found, IndexDamaged, OutOfTime
from hermes.state.indexing.indexed_text import search_text
from hermes.state.operations import chunks
from hermes.state.owner import EVERYBODY
from hermes.state.search.context import SCAN_S, SearchContext
from hermes.state.search.copies import MessagePlace

MAX_ID = 2**63 - 1
_RANGES_AT_ONCE = 8_192
_TAIL_SHARE = 1 / 2
_ROWS_AT_ONCE, _ROWS_PER_STEP = 128, 16
"""How many rows one query reads, and after how many the clock is checked."""

_WHOLE = "m.role, m.content, m.tool_name, m.tool_calls"
CHAIN = """COALESCE(s.chain_root,
    CASE WHEN EXISTS (SELECT 1 FROM sessions c WHERE c.chain_root = s.id) THEN s.id END)"""
"""The root of the chain of a session `s`; NULL for a session without a chain."""
_HEAD_OF_CALLS = 200
_ROLE = "m.role, NULL, NULL, NULL"
_HEAD = f"m.role, substr(m.content, 1, {HEAD}), m.tool_name, substr(m.tool_calls, 1, {_HEAD_OF_CALLS})"
SEARCH_TOOL = "session_search"


def is_search_machinery(content: Any, tool_name: Any, tool_calls: Any) -> bool:
    """Whether a message is only the call or the result of an earlier search."""
    if tool_name == SEARCH_TOOL:
        return True
    return not content and isinstance(tool_calls, str) and SEARCH_TOOL in tool_calls[:_HEAD_OF_CALLS]


class Hit(NamedTuple):
    """A message that matches."""

    message_id: int
    timestamp: float
    role: str
    head: str
    """The start of its text, if the caller asked for it."""
    is_machinery: bool = False
    """Whether it is only the call or the result of an earlier search, which repeats what was looked for."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a walk."""

    is_empty: bool
    """Whether no match was found."""
    is_complete: bool
    """Whether no message was skipped because of the time limit."""
    is_damaged: bool
    """Whether the index is damaged."""
    hidden: Mapping[str, int]
    """How many matches are not shown, by reason."""


class Walk:
    """One pass over the matches of a query, with its own time limit."""

    def __init__(self, context: SearchContext, query: Node, deadline: float) -> None:
        self._context, self._query, self._deadline = context, query, deadline
        self._is_empty = self._is_complete = True
        self._is_damaged = False
        self._undone: set[int] = set()

    @property
    def progress(self) -> Progress:
        """The progress so far."""
        hidden = {"rewound": len(self._undone)} if self._undone else {}
        return Progress(self._is_empty, self._is_complete, self._is_damaged, hidden)

    def hits(self, chunk: int, *, high: int = MAX_ID, with_heads: bool = False) -> Iterator[Hit]:
        """Yield all matches with id <= high, highest id first; the index returns `chunk` at a time."""
        return self._within_time(self._all(chunk, high, with_heads=with_heads))

    def unindexed_hits(self) -> Iterator[Hit]:
        """Yield the matches that are not in the index, or changed since they were indexed."""
        return self._within_time(chain(self._tail(MAX_ID), self._stale(MAX_ID)))

    def indexed_hits(self, chunk: int, low: int, high: int) -> Iterator[Hit]:
        """Yield the indexed matches with low <= id <= high, highest id first."""
        return self._within_time(self._read_indexed(chunk, low, high))

    def _within_time(self, hits: Iterator[Hit]) -> Iterator[Hit]:
        try:
            for hit in hits:
                self._is_empty = False
                yield hit
        except OutOfTime:
            self._is_complete = False
        except IndexDamaged:
            self._is_damaged, self._is_complete = True, False

    def _all(self, chunk: int, high: int, *, with_heads: bool) -> Iterator[Hit]:
        if not self._is_damaged:
            try:
                for hit in self._merge(chunk, high, with_heads=with_heads):
                    yield hit
                    high = hit.message_id - 1
            except IndexDamaged:
                self._is_damaged = True
            else:
                return
        yield from self._read(-MAX_ID, high, self._context.deadline + SCAN_S)

    def _merge(self, chunk: int, high: int, *, with_heads: bool) -> Iterator[Hit]:
        """Yield matches from the index and from outside it, in one order."""
        yield from self._tail(high)
        stale = self._stale(high)
        next_stale = next(stale, None)
        for hit in self._read_indexed(chunk, -MAX_ID, high, with_heads=with_heads):
            while next_stale is not None and next_stale.message_id > hit.message_id:
                yield next_stale
                next_stale = next(stale, None)
            yield hit
        if next_stale is not None:
            yield next_stale
            yield from stale

    def _tail(self, high: int) -> Iterator[Hit]:
        """Yield the matches among the newest messages. They get a part of the time; the rest is for the index."""
        deadline = self._context.earlier(self._deadline, _TAIL_SHARE)
        try:
            yield from self._read(self._context.coverage.upto + 1, high, deadline)
        except OutOfTime:
            self._is_complete = False

    def _stale(self, high: int) -> Iterator[Hit]:
        """Return the matches among messages that changed since they were indexed."""
        upto, stale, _ = self._context.coverage
        return self._check([each for each in stale if each <= min(high, upto)], _WHOLE, with_scope=True)

    def _read_indexed(self, chunk: int, low: int, high: int, *, with_heads: bool = False) -> Iterator[Hit]:
        upto, stale, _ = self._context.coverage
        skipped = frozenset(stale)
        for found in self.candidates(chunk, low, min(high, upto)):
            ids = [each for each in found.ids if each not in skipped]
            if not found.is_scoped:
                ids = list(filter(self._context.may_include, ids))
            columns = (_HEAD if with_heads else _ROLE) if found.is_certain else _WHOLE
            yield from self._check(ids, columns, with_scope=not found.is_scoped)

    def candidates(self, chunk: int, low: int, high: int) -> Iterator[Found]:
        """Yield what the index finds for the query in the scope, `chunk` at a time, highest id first."""
        tx, index, scope, waits = self._context.tx, self._context.index, self._context.scope, self._context.waits
        for first, last in self._spans(low, high):
            yield from index.candidates(
                tx, self._query, scope, first, last, chunk, deadline=self._deadline + waits.total_s
            )

    def _spans(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of ids that may hold messages of the scope's time, highest first."""
        if low > high:
            return
        if self._context.scope.since is None and self._context.scope.until is None:
            yield low, high
            return
        first = last = 0
        for time_range in sorted(self._context.time_ranges(_RANGES_AT_ONCE, newest_first=True), reverse=True):
            if time_range.high + 1 < first or not first:
                if first and max(first, low) <= min(last, high):
                    yield max(first, low), min(last, high)
                last = time_range.high
            first = time_range.low
        if first and max(first, low) <= min(last, high):
            yield max(first, low), min(last, high)

    def _read(self, low: int, high: int, deadline: float) -> Iterator[Hit]:
        """Yield the matches among all rows with low <= id <= high, without the index."""
        tx, waits = self._context.tx, self._context.waits
        while low <= high:
            with waits.exclude_waiting():
                rows = tx.rows(
                    f"""SELECT m.id, m.timestamp, m.active, m.session_id, {_WHOLE}, s.source, s.owner, {CHAIN}
                        FROM messages m LEFT JOIN sessions s ON s.id = m.session_id
                        WHERE m.id BETWEEN :low AND :high ORDER BY m.id DESC LIMIT :limit""",
                    low=low,
                    high=high,
                    limit=_ROWS_AT_ONCE,
                )
            self._context.copies.remember({row[3]: row[-1] for row in rows})
            for at in range(0, len(rows), _ROWS_PER_STEP):
                with waits.exclude_waiting():
                    hits = self._originals([row[:-1] for row in rows[at : at + _ROWS_PER_STEP]])
                yield from hits
                self._check_time(deadline)
            if len(rows) < _ROWS_AT_ONCE:
                return
            high = rows[-1][0] - 1

    def _check(self, ids: Sequence[int], columns: str, *, with_scope: bool) -> Iterator[Hit]:
        """Yield the candidates of the index that match, in order; their texts are matched if `columns` has them."""
        tx, waits = self._context.tx, self._context.waits
        session, join = "NULL, NULL", ""
        if with_scope:
            session, join = "s.source, s.owner", "LEFT JOIN sessions s ON s.id = m.session_id"
        for some in chunks(ids):
            chosen, values = tx.dialect.is_among("m.id", some)
            with waits.exclude_waiting():
                rows = tx.rows(
                    f"""SELECT m.id, m.timestamp, m.active, m.session_id, {columns}, {session} FROM messages m {join}
                        WHERE {chosen} ORDER BY m.id DESC""",
                    **values,
                )
                hits = self._originals(rows, is_certain=columns is not _WHOLE, with_scope=with_scope)
            yield from hits
            self._check_time(self._deadline)

    def _originals(
        self, rows: Sequence[tuple[Any, ...]], *, is_certain: bool = False, with_scope: bool = True
    ) -> list[Hit]:
        """Return the matches among rows, each message once, without those that were undone in a later copy."""
        hits = list(self._admit(rows, is_certain=is_certain, with_scope=with_scope))
        if not hits:
            return hits
        sessions = {row[0]: row[3] for row in rows}
        places = [MessagePlace(hit.message_id, sessions[hit.message_id], hit.timestamp) for hit in hits]
        left_out = self._context.copies.left_out(places)
        return [hit for hit in hits if hit.message_id not in left_out]

    def _admit(self, rows: Sequence[tuple[Any, ...]], *, is_certain: bool, with_scope: bool) -> Iterator[Hit]:
        scope = self._context.scope
        for message_id, timestamp, active, session_id, role, content, tool_name, tool_calls, source, owner in rows:
            if with_scope and not scope.admits(role, session_id, source, owner):
                continue
            # An old file may hold any value instead of a time.
            timestamp = timestamp if isinstance(timestamp, int | float) else 0.0
            if not scope.admits_time(timestamp):
                continue
            if not is_certain and not matches(self._query, Document(search_text(role, content, tool_name, tool_calls))):
                continue
            if not active and not scope.include_inactive:
                # Without its session row, the message may have another owner since it was indexed.
                if with_scope or scope.owner is EVERYBODY:
                    self._undone.add(message_id)
                continue
            # The same head however the message was found: the order must not depend on how an engine finds it.
            head = content[:HEAD] if isinstance(content, str) else ""
            yield Hit(message_id, timestamp, role, head, is_search_machinery(content, tool_name, tool_calls))

    def _check_time(self, deadline: float) -> None:
        if self._context.is_over(deadline):
            raise OutOfTime
