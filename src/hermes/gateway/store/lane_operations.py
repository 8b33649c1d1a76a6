"""The operations on lanes: create, touch, reset, switch, mark, list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hermes.gateway.decide import decide
from hermes.gateway.entry import SessionEntry
from hermes.gateway.source import SessionSource
from hermes.gateway.store.backend import LaneBackend, all_lanes
from hermes.gateway.store.base import StoreBase
from hermes.gateway.store.lane_entries import entry_from_row
from hermes.ids import new_session_id
from hermes.state.lanes.identity import is_storable
from hermes.state.lanes.types import Decision, Keep, LaneFields, LaneRow, Lease, NewSession, Start
from hermes.state.owner import OwnerName
from hermes.state.provider import SessionDBProvider

T = TypeVar("T")

MAX_COLUMN_CHARACTERS = 200
MAX_NAME_CHARACTERS = 32_768
_DAY_S = 86_400.0


class LaneOperations(StoreBase):
    """Which session a chat uses, and how it continues."""

    def get_or_create_session(
        self, source: SessionSource, force_new: bool = False, *, lease: Lease | None = None
    ) -> SessionEntry:
        """Return the session of the lane of a message: the present one, or a new one if a rule says so.

        With a lease, raise `StaleLease` if another node has the lane by now; so do the other operations that take one.
        """
        key = self._generate_session_key(source)
        has_processes = not force_new and self._has_processes(key, on_error=True)
        policy = self.config.get_reset_policy(source.platform, source.chat_type)
        session = self._new_session(source, key)

        def choose(row: LaneRow | None, now: float) -> Decision:
            fields = _description(source)
            if row is None or force_new:
                return Start(session, fields)
            reason = decide(entry_from_row(row), policy, self._zoned_now(now), has_processes=has_processes)
            if reason is None:
                return Keep()
            fields["was_auto_reset"] = True
            fields["auto_reset_reason"] = reason.value
            fields["reset_had_activity"] = _had_activity(row)
            return Start(session, fields)

        now = self._clock()
        lane = self._on_lane(key, lambda lanes: lanes.resolve(key, choose, now=now), lease).lane
        return self._changed(lane if lane["ended_at"] is None else self._continue_ended(lane))

    def peek(self, source: SessionSource) -> SessionEntry | None:
        """Return the entry of the lane of a message, or None; this changes nothing."""
        key = self._generate_session_key(source)
        row = self._on_lane(key, lambda lanes: lanes.get(key))
        return None if row is None else entry_from_row(row)

    def update_session(self, session_key: str, last_prompt_tokens: int | None = None) -> None:
        """Note activity in a lane, and the size of its last prompt; an unknown lane stays unknown."""
        if not session_key:
            return
        fields: LaneFields = {} if last_prompt_tokens is None else {"last_prompt_tokens": last_prompt_tokens}
        now = self._clock()
        self._note(self._on_lane(session_key, lambda lanes: lanes.update(session_key, now=now, **fields)))

    def reset_session(
        self, session_key: str, display_name: str | None = None, *, lease: Lease | None = None
    ) -> SessionEntry | None:
        """Start a new session in a lane, as `/new` does; None if the lane is unknown."""
        if not session_key:
            return None
        fresh_id, now = new_session_id(self._clock()), self._clock()

        def choose(row: LaneRow | None, now: float) -> Decision:
            if row is None:
                raise _UnknownLane
            fields: LaneFields = {
                "platform": row["platform"],
                "chat_type": row["chat_type"],
                "display_name": row["display_name"] if display_name is None else display_name,
                "origin": row["origin"],
                "is_fresh_reset": True,
            }
            return Start(self._next_session(row, fresh_id), fields)

        try:
            resolved = self._on_lane(session_key, lambda lanes: lanes.resolve(session_key, choose, now=now), lease)
        except _UnknownLane:
            return None
        return self._changed(resolved.lane)

    def switch_session(
        self, session_key: str, target_session_id: str, *, owner: OwnerName = None, lease: Lease | None = None
    ) -> SessionEntry | None:
        """Let a lane continue another session, as `/resume` does; None if the lane is unknown.

        Raise `UnknownSession` if that session does not exist, or is not one of `owner`.
        """
        if not session_key:
            return None
        now = self._clock()
        row = self._on_lane(
            session_key, lambda lanes: lanes.switch(session_key, target_session_id, owner=owner, now=now), lease
        )
        return None if row is None else self._changed(row)

    def suspend_session(self, session_key: str, *, lease: Lease | None = None) -> bool:
        """Mark a lane so that its next message starts a new session; False if it is unknown."""
        return self._mark(session_key, lambda lanes: lanes.suspend(session_key), lease)

    def mark_resume_pending(self, session_key: str, reason: str = "restart_timeout") -> bool:
        """Mark a lane so that its session continues after a restart; False if it is unknown or suspended."""
        now = self._clock()
        return self._mark(session_key, lambda lanes: lanes.mark_resume_pending(session_key, reason, now=now))

    def clear_resume_pending(self, session_key: str) -> bool:
        """Remove the mark after a turn that succeeded; False if there was none."""
        return self._mark(session_key, lambda lanes: lanes.clear_resume_pending(session_key))

    def suspend_recently_active(self, max_age_seconds: int = 120) -> int:
        """Mark the lanes that were active shortly before a crash as `mark_resume_pending` does; return how many."""
        self._handed_out.store_all()
        now = self._clock()
        since = now - max_age_seconds
        count = self._connection.run_lanes(lambda lanes: lanes.mark_recently_active(since, now=now))
        if count:
            for row in self._connection.run_lanes(lambda lanes: lanes.recent(active_since=since, limit=None)):
                self._note(row)
        self._handed_out.refresh()
        return count

    def prune_old_entries(self, max_age_days: int | None) -> int:
        """Delete lanes without activity for days, but not their sessions; return how many.

        Suspended lanes and lanes with background processes stay.
        """
        if not max_age_days or max_age_days <= 0:
            return 0
        self._handed_out.store_all()
        before = self._clock() - max_age_days * _DAY_S
        count = self._connection.run_lanes(
            lambda lanes: lanes.prune(before, skip=lambda key: self._has_processes(key, on_error=False))
        )
        self._handed_out.refresh()
        self._marked(count > 0)
        return count

    def list_sessions(self, active_minutes: int | None = None) -> list[SessionEntry]:
        """Return all lanes, or those active in the last minutes, the most recently active first."""
        self._handed_out.store_all()
        since = None if active_minutes is None else self._clock() - active_minutes * 60.0
        rows = self._connection.run_lanes(lambda lanes: all_lanes(lanes, active_since=since))
        return [entry_from_row(row) for row in rows.values()]

    def lookup_by_session_id(self, session_id: str) -> SessionEntry | None:
        """Return the lane that uses a session."""
        if not session_id or not is_storable(session_id):
            return None
        row = self._connection.run_lanes(lambda lanes: lanes.find_by_session(session_id))
        return None if row is None else self._handed_out.give(row)

    def has_any_sessions(self) -> bool:
        """Return whether there were sessions before the present one, on any platform."""
        return self._connection.run(lambda db: db.session_count() > 1, lambda files: files.count() > 1)

    def _continue_ended(self, lane: LaneRow) -> LaneRow:
        """Let a lane continue a session that ended elsewhere: its compression child, or the session itself."""
        key, session_id = lane["session_key"], lane["session_id"]

        def continue_in(db: SessionDBProvider) -> LaneRow:
            tip = db.get_compression_tip(session_id)
            if tip != session_id:
                db.lanes.rebind(key, session_id, tip)
            row = db.lanes.get(key) or lane
            if row["ended_at"] is not None and db.reopen_session(row["session_id"]):
                row["ended_at"] = None
            return row

        return self._connection.run(continue_in, lambda files: lane)

    def _next_session(self, row: LaneRow, session_id: str) -> NewSession:
        """Return the session that follows the present one of a lane."""
        if row["origin"]:
            session = self._new_session(SessionSource.from_stored(row["origin"]), row["session_key"])
            return NewSession(session_id, session.source, session.user_id, session.owner)
        return NewSession(session_id, row["platform"] or "unknown", owner=row["owner"] or row["session_key"])

    def _on_lane(self, key: str, operation: Callable[[LaneBackend], T], lease: Lease | None = None) -> T:
        """Run an operation on a lane, after changes that a caller made in its entry."""
        self._handed_out.store_changes(key)
        result = self._connection.run_lanes(operation, lease)
        self._handed_out.refresh(key)
        return result

    def _mark(self, key: str, operation: Callable[[LaneBackend], bool], lease: Lease | None = None) -> bool:
        is_changed = bool(key) and self._on_lane(key, operation, lease)
        if is_changed:
            self._note(self._connection.run_lanes(lambda lanes: lanes.get(key)))
        return is_changed


class _UnknownLane(Exception):
    """There is no such lane."""


def _description(source: SessionSource) -> LaneFields:
    return {
        "origin": _origin(source),
        "display_name": source.chat_name and source.chat_name[:MAX_COLUMN_CHARACTERS],
        "platform": source.platform.value,
        "chat_type": source.chat_type[:MAX_COLUMN_CHARACTERS],
    }


def _origin(source: SessionSource) -> dict[str, Any]:
    """Return a source as it is stored: names that people choose have no limit on some platforms."""
    stored = source.to_dict()
    for name in ("chat_name", "user_name", "chat_topic"):
        stored[name] = stored[name] and stored[name][:MAX_NAME_CHARACTERS]
    return stored


def _had_activity(row: LaneRow) -> bool:
    return row["message_count"] > 0 or entry_from_row(row).total_tokens > 0
