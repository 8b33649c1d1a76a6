"""Going through the messages that match a query, newest first, for as long as there is time.

Most come from the index. Those that it does not know yet are read and matched here, in their place in the order; so are
all of them when the index is damaged.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from hermes.query.match import Document, matches
from hermes.query.rank import HEAD
from hermes.query.tree import Node
from hermes.state.copies import Copies, Place
from hermes.state.engine import Coverage, Found, Index, IndexDamaged, OutOfTime, Reading, Zone
from hermes.state.operations import chunks, placeholders
from hermes.state.owner import EVERYBODY
from hermes.state.scope import Scope
from hermes.state.searchtext import search_text
from hermes.state.waits import Waits

MAX_ID = 2**63 - 1
BACKLOG, BEHIND = 1_024, 8_192
"""As many messages may wait for the index: for more there is extra time, and with many more a search says so."""
MAX_STALE = 2_000
"""How many changed messages are looked at one by one."""
SCAN_S = 1.0
"""How much longer a search may take that has to read messages because the index does not know them."""
SOME_ZONES, ALL_ZONES = 64, 8_192
_LOOSE_CHUNK, _LOOSE_STEP = 128, 16

_WHOLE = "m.role, m.content, m.tool_name, m.tool_calls"
_CHAIN = """COALESCE(s.chain_root,
    CASE WHEN EXISTS (SELECT 1 FROM sessions c WHERE c.chain_root = s.id) THEN s.id END)"""
_ROLE = "m.role, NULL, NULL, NULL"
_HEAD = f"m.role, substr(m.content, 1, {HEAD}), NULL, NULL"


class Hit(NamedTuple):
    """A message that matches."""

    message_id: int
    timestamp: float
    role: str
    head: str


@dataclass
class Walk:
    """One search on one snapshot of the store."""

    tx: Reading
    index: Index
    query: Node
    scope: Scope
    deadline: float
    waits: Waits
    """By how much the deadline is later because the search had to wait for others."""
    is_complete: bool = True
    is_empty: bool = True
    """Whether nothing has been found so far."""
    is_damaged: bool = False
    wants_heads: bool = True
    """Whether somebody is going to compare what the messages say."""
    hidden: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.backlog > BACKLOG:
            self.deadline += SCAN_S

    @cached_property
    def coverage(self) -> Coverage:
        """What the index knows."""
        return self.index.coverage(self.tx, MAX_STALE)

    @cached_property
    def backlog(self) -> int:
        """How many messages wait for the index, about."""
        return (self.tx.value("SELECT MAX(id) FROM messages") or 0) - self.coverage.upto

    @cached_property
    def _copies(self) -> Copies:
        return Copies(self.tx, self.scope)

    @property
    def is_behind(self) -> bool:
        """Whether more messages wait for the index than ever do when all is well."""
        return self.backlog > BEHIND or len(self.coverage.stale) >= MAX_STALE

    def hits(self, chunk: int) -> Iterator[Hit]:
        """All matches, highest id first."""
        return self._in_time(self._all(chunk))

    def loose_hits(self) -> Iterator[Hit]:
        """The matches that the index does not answer for."""
        return self._in_time(chain(self._tail(), self._stale_hits()))

    def known_hits(self, chunk: int, low: int, high: int) -> Iterator[Hit]:
        """The matches with low <= id <= high that it does answer for, highest id first."""
        return self._in_time(self._known(chunk, low, min(high, self.coverage.upto)))

    def _in_time(self, hits: Iterator[Hit]) -> Iterator[Hit]:
        try:
            for hit in hits:
                self.is_empty = False
                yield hit
        except OutOfTime:
            self.is_complete = False
        except IndexDamaged:
            self.is_damaged, self.is_complete = True, False

    def _all(self, chunk: int) -> Iterator[Hit]:
        at = MAX_ID
        try:
            for hit in self._merged(chunk):
                yield hit
                at = hit.message_id - 1
        except IndexDamaged:
            self.is_damaged = True
            self.deadline += SCAN_S
            yield from self._read(-MAX_ID, at)

    def _merged(self, chunk: int) -> Iterator[Hit]:
        """What the index answers for and what it does not, in one order."""
        upto = self.coverage.upto
        yield from self._tail()
        out_of_place = self._stale_hits()
        waiting = next(out_of_place, None)
        for hit in self._known(chunk, -MAX_ID, upto):
            while waiting is not None and waiting.message_id > hit.message_id:
                yield waiting
                waiting = next(out_of_place, None)
            yield hit
        if waiting is not None:
            yield waiting
            yield from out_of_place

    def _tail(self) -> Iterator[Hit]:
        """The matches among the newest messages. They may not take all the time there is: the index is asked too."""
        deadline, self.deadline = self.deadline, self.deadline - self.time_left() / 2
        try:
            yield from self._read(self.coverage.upto + 1, MAX_ID)
        except OutOfTime:
            self.is_complete = False
        finally:
            self.deadline = deadline

    def _stale_hits(self) -> Iterator[Hit]:
        ids = [each for each in self.coverage.stale if each <= self.coverage.upto]
        return self._checked(ids, is_certain=False, with_scope=True)

    def _known(self, chunk: int, low: int, high: int) -> Iterator[Hit]:
        stale = frozenset(self.coverage.stale)
        for found in self._candidates(chunk, low, high):
            ids = [each for each in found.ids if each not in stale]
            if not found.is_scoped:
                ids = [each for each in ids if each not in self._excluded and self._may_include(each)]
            yield from self._checked(ids, is_certain=found.is_certain, with_scope=not found.is_scoped)

    @cached_property
    def _excluded(self) -> frozenset[int]:
        return self._messages_of(self.scope.not_sessions)

    @cached_property
    def _included(self) -> frozenset[int]:
        return self._messages_of(self.scope.sessions or ())

    def _may_include(self, message_id: int) -> bool:
        return self.scope.sessions is None or message_id in self._included

    def _messages_of(self, session_ids: Sequence[str]) -> frozenset[int]:
        """The messages of sessions that are too many to be named to the index; looking at each row would take long."""
        found: set[int] = set()
        for some in chunks(session_ids):
            listed, values = placeholders("id", some)
            found.update(
                row[0] for row in self.tx.rows(f"SELECT id FROM messages WHERE session_id IN ({listed})", **values)
            )
        return frozenset(found)

    def _candidates(self, chunk: int, low: int, high: int) -> Iterator[Found]:
        for first, last in self._spans(low, high):
            yield from self.index.candidates(
                self.tx, self.query, self.scope, first, last, chunk, deadline=self.deadline + self.waits.total_s
            )

    def _spans(self, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Where messages of the scope's time may lie, highest ids first."""
        if low > high:
            return
        if self.scope.since is None and self.scope.until is None:
            yield low, high
            return
        first = last = 0
        for zone in sorted(self.zones(ALL_ZONES, newest_first=True), reverse=True):
            if zone.high + 1 < first or not first:
                if first and max(first, low) <= min(last, high):
                    yield max(first, low), min(last, high)
                last = zone.high
            first = zone.low
        if first and max(first, low) <= min(last, high):
            yield max(first, low), min(last, high)

    def zones(self, at_once: int, *, newest_first: bool) -> Iterator[Zone]:
        """Spans of ids in which messages of the scope's time may lie, by their newest (or oldest) moment."""
        after: Zone | None = None
        while True:
            some = self.index.zones(self.tx, self.scope, after, at_once, newest_first=newest_first)
            yield from some
            if len(some) < at_once:
                return
            after = some[-1]

    def _read(self, low: int, high: int) -> Iterator[Hit]:
        """The matches among rows that no index answers for."""
        while low <= high:
            with self.waits.uncounted():
                rows = self.tx.rows(
                    f"""SELECT m.id, m.timestamp, m.active, m.session_id, {_WHOLE}, s.source, s.owner, {_CHAIN}
                        FROM messages m LEFT JOIN sessions s ON s.id = m.session_id
                        WHERE m.id BETWEEN :low AND :high ORDER BY m.id DESC LIMIT :limit""",
                    low=low,
                    high=high,
                    limit=_LOOSE_CHUNK,
                )
            self._copies.remember({row[3]: row[-1] for row in rows})
            for at in range(0, len(rows), _LOOSE_STEP):
                with self.waits.uncounted():
                    hits = self._originals([row[:-1] for row in rows[at : at + _LOOSE_STEP]])
                yield from hits
                self._look_at_the_clock()
            if len(rows) < _LOOSE_CHUNK:
                return
            high = rows[-1][0] - 1

    def _checked(self, ids: Sequence[int], *, is_certain: bool, with_scope: bool) -> Iterator[Hit]:
        """Candidates of the index in their order, without those that are hidden, of another time or do not match."""
        for some in chunks(ids):
            listed, values = placeholders("id", some)
            shown = (_HEAD if self.wants_heads else _ROLE) if is_certain else _WHOLE
            session, join = ("s.source, s.owner", "LEFT JOIN sessions s ON s.id = m.session_id")
            if not with_scope:
                session, join = "NULL, NULL", ""
            with self.waits.uncounted():
                rows = self.tx.rows(
                    f"""SELECT m.id, m.timestamp, m.active, m.session_id, {shown}, {session} FROM messages m {join}
                        WHERE m.id IN ({listed}) ORDER BY m.id DESC""",
                    **values,
                )
                hits = self._originals(rows, is_certain=is_certain, with_scope=with_scope)
            yield from hits
            self._look_at_the_clock()

    def _originals(
        self, rows: Sequence[tuple[Any, ...]], *, is_certain: bool = False, with_scope: bool = True
    ) -> list[Hit]:
        """The matches among rows, each message once, and none that was undone where the conversation goes on."""
        hits = list(self._admitted(rows, is_certain=is_certain, with_scope=with_scope))
        if not hits:
            return hits
        sessions = {row[0]: row[3] for row in rows}
        places = [Place(hit.message_id, sessions[hit.message_id], hit.timestamp) for hit in hits]
        left_out = self._copies.among(places) | self._copies.undone(places)
        return [hit for hit in hits if hit.message_id not in left_out]

    def _admitted(
        self, rows: Sequence[tuple[Any, ...]], *, is_certain: bool = False, with_scope: bool = True
    ) -> Iterator[Hit]:
        for message_id, timestamp, active, session_id, role, content, tool_name, tool_calls, source, owner in rows:
            if with_scope and not self.scope.admits(role, session_id, source, owner):
                continue
            # An old file may hold anything where a time should be.
            timestamp = timestamp if isinstance(timestamp, int | float) else 0.0
            if not self.scope.admits_time(timestamp):
                continue
            if is_certain:
                head = content if isinstance(content, str) else ""
            else:
                text = search_text(role, content, tool_name, tool_calls)
                if not matches(self.query, Document(text)):
                    continue
                head = text[:HEAD]
            if not active and not self.scope.include_inactive:
                # The index may still say that it is one person's when it has become another's.
                self.hidden["rewound"] += with_scope or self.scope.owner is EVERYBODY
                continue
            yield Hit(message_id, timestamp, role, head)

    def time_left(self) -> float:
        """How many seconds this search still has."""
        return max(0.0, self.deadline + self.waits.total_s - time.monotonic())

    def _look_at_the_clock(self) -> None:
        if time.monotonic() > self.deadline + self.waits.total_s:
            raise OutOfTime
