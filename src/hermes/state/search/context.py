"""Shared by all steps of one search: the snapshot of the store, its index, the scope and the time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermes.lazy import lazy
from hermes.state.engine import Coverage, Index, Reading, TimeRange
from hermes.state.operations import chunks, placeholders
from hermes.state.search.copies import Copies
from hermes.state.search.scope import Scope
from hermes.state.waits import Waits

MAX_UNINDEXED, MAX_LAG = 1_024, 8_192
"""With more unindexed messages a search gets extra time; with many more its results are marked as degraded."""
MAX_STALE = 2_000
"""How many changed messages are checked one by one."""
SCAN_S = 1.0
"""Extra time for a search that must read messages because the index does not have them."""


@dataclass(frozen=True)
class SearchContext:
    """One search on one snapshot of the store; everything is read from the store only once."""

    tx: Reading
    index: Index
    scope: Scope
    stop_at: float
    """When the search must stop, in `time.monotonic`, unless many messages are not indexed yet."""
    waits: Waits
    """How much later it may stop because it waited for others."""

    @lazy
    def deadline(self) -> float:
        """When the search must stop, without the time that it waited."""
        return self.stop_at + (SCAN_S if self.unindexed > MAX_UNINDEXED else 0.0)

    @lazy
    def coverage(self) -> Coverage:
        """Which messages the index has."""
        return self.index.coverage(self.tx, MAX_STALE)

    @lazy
    def newest_id(self) -> int:
        """The highest id of a message; 0 without messages."""
        return self.tx.value("SELECT MAX(id) FROM messages") or 0

    @lazy
    def unindexed(self) -> int:
        """About how many messages are not in the index yet."""
        return self.newest_id - self.coverage.upto

    @property
    def is_index_behind(self) -> bool:
        """Whether the index lacks more messages than in normal operation."""
        return self.unindexed > MAX_LAG or self.has_too_many_stale

    @property
    def has_too_many_stale(self) -> bool:
        """Whether more messages may have changed than a search checks."""
        return len(self.coverage.stale) >= MAX_STALE

    @lazy
    def copies(self) -> Copies:
        """Which messages are copies of others."""
        return Copies(self.tx, self.scope)

    def may_include(self, message_id: int) -> bool:
        """Whether the scope's sessions include a message; faster than reading each row."""
        if message_id in self._excluded:
            return False
        return self.scope.sessions is None or message_id in self._included

    @lazy
    def _excluded(self) -> frozenset[int]:
        return self._messages_of(self.scope.not_sessions)

    @lazy
    def _included(self) -> frozenset[int]:
        return self._messages_of(self.scope.sessions or ())

    def _messages_of(self, session_ids: Sequence[str]) -> frozenset[int]:
        found: set[int] = set()
        for some in chunks(session_ids):
            listed, values = placeholders("id", some)
            found.update(
                row[0] for row in self.tx.rows(f"SELECT id FROM messages WHERE session_id IN ({listed})", **values)
            )
        return frozenset(found)

    def time_ranges(self, at_once: int, *, newest_first: bool) -> Iterator[TimeRange]:
        """Yield the ranges that may hold messages of the scope's time, ordered by their newest (or oldest) time."""
        after: TimeRange | None = None
        while True:
            some = self.index.time_ranges(self.tx, self.scope, after, at_once, newest_first=newest_first)
            yield from some
            if len(some) < at_once:
                return
            after = some[-1]

    def earlier(self, deadline: float, share: float) -> float:
        """Return a deadline that leaves only a share of the time before another one."""
        seconds_left = max(0.0, deadline + self.waits.total_s - time.monotonic())
        return deadline - seconds_left * (1 - share)

    def is_over(self, deadline: float) -> bool:
        """Whether a deadline has passed."""
        return time.monotonic() > deadline + self.waits.total_s
