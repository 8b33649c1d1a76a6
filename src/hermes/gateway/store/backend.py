"""What a session store needs of the place where its lanes are: a database, or files while there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, Unpack

from hermes.state.lanes.types import Decide, Decision, Keep, LaneFields, LaneRow, Resolved
from hermes.state.owner import OwnerName


class LaneBackend(Protocol):
    """The operations on lanes that `hermes.state.lanes.entries.Lanes` has, too."""

    def get(self, key: str) -> LaneRow | None:
        """Return a lane, or None."""

    def resolve(self, key: str, decide: Decide, *, now: float | None = None) -> Resolved:
        """Let `decide` choose between the lane's session and a new one, and store that."""

    def update(
        self, key: str, *, now: float | None = None, touch: bool = True, **fields: Unpack[LaneFields]
    ) -> LaneRow | None:
        """Change columns of a lane and return it; None if there is none."""

    def recent(
        self, *, active_since: float | None = None, after: str | None = None, limit: int | None = 100
    ) -> list[LaneRow]:
        """Return a page of lanes, the most recently active first."""

    def find_by_session(self, session_id: str) -> LaneRow | None:
        """Return the lane that uses a session."""

    def idle(self, before: float, *, after: str | None = None, limit: int | None = 200) -> list[LaneRow]:
        """Return a page of lanes that were last active before a time and are not finalized."""

    def resume_candidates(
        self, marked_since: float | None = None, *, after: str | None = None, limit: int | None = 200
    ) -> list[LaneRow]:
        """Return a page of lanes that are marked to continue after a restart and not suspended, by id."""

    def count(self) -> int:
        """Return the number of lanes."""

    def suspend(self, key: str) -> bool:
        """Mark a lane so that its next message starts a new session."""

    def mark_resume_pending(self, key: str, reason: str, *, now: float | None = None) -> bool:
        """Mark a lane so that its session continues after a restart."""

    def clear_resume_pending(self, key: str) -> bool:
        """Remove that mark."""

    def mark_recently_active(
        self, since: float, *, reason: str = "restart_interrupted", now: float | None = None
    ) -> int:
        """Mark all lanes that were active since a time."""

    def rebind(self, key: str, expected_session_id: str, session_id: str) -> bool:
        """Let a lane use another session, unless it uses another one than expected by now."""

    def switch(
        self,
        key: str,
        session_id: str,
        *,
        owner: OwnerName = None,
        end_reason: str = "session_switch",
        now: float | None = None,
    ) -> LaneRow | None:
        """Let a lane continue another session, and end the one it used."""

    def prune(self, before: float, *, skip: Callable[[str], bool] | None = None) -> int:
        """Delete lanes that were last active before a time."""


def change_lane(
    lanes: LaneBackend, key: str, fields: LaneFields, is_current: Callable[[LaneRow], bool]
) -> LaneRow | None:
    """Change columns of a lane and return it; None if there is none, or if it is not the expected one any more."""

    def choose(row: LaneRow | None, now: float) -> Decision:
        if row is None or not is_current(row):
            raise _Moved
        return Keep(fields, touch=False)

    try:
        return lanes.resolve(key, choose).lane
    except _Moved:
        return None


class _Moved(Exception):
    """The lane is not the expected one."""


def walk_lanes(
    lanes: LaneBackend, *, active_since: float | None = None, page: int = 200, pause: Callable[[], None] = lambda: None
) -> Iterator[LaneRow]:
    """Yield every lane once, or those active since a time, by activity; `pause` is called after every page.

    A lane that becomes active meanwhile leaves its place in this order, so the newest ones are read again at the end.
    """
    seen: set[str] = set()
    rows = lanes.recent(active_since=active_since, limit=page)
    newest = rows[0]["updated_at"] if rows else None
    while rows:
        fresh = [row for row in rows if row["session_key"] not in seen]
        seen.update(row["session_key"] for row in fresh)
        yield from fresh
        if len(rows) < page:
            break
        pause()
        rows = lanes.recent(active_since=active_since, after=rows[-1]["cursor"], limit=page)
    if newest is not None and len(seen) >= page:
        yield from (row for row in lanes.recent(active_since=newest, limit=None) if row["session_key"] not in seen)


def all_lanes(lanes: LaneBackend, *, active_since: float | None = None) -> dict[str, LaneRow]:
    """Return all lanes, or those active since a time, by key, the most recently active first."""
    rows = sorted(walk_lanes(lanes, active_since=active_since), key=lambda row: row["updated_at"], reverse=True)
    return {row["session_key"]: row for row in rows}
