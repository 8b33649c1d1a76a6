"""What the gateway's background work needs of lanes: expiry, recovery, restarts, compression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

from hermes.errors import InvalidValue
from hermes.gateway.decide import decide
from hermes.gateway.entry import SessionEntry
from hermes.gateway.platform import Platform
from hermes.gateway.policy import SessionResetPolicy
from hermes.gateway.source import SessionSource
from hermes.gateway.store.backend import change_lane
from hermes.gateway.store.base import StoreBase
from hermes.gateway.store.lane_entries import entry_from_row, local_time
from hermes.state.lanes.types import Decision, Keep, LaneFields, LaneRow

RESUME_REASONS: Final = frozenset({"restart_timeout", "shutdown_timeout", "restart_interrupted"})
"""The reasons after which a session continues by itself."""
STUCK_RESTARTS = 3
_PAGE = 200
NEVER_S = 0.0
"""A time before every activity: without a policy that ends sessions, none has expired."""


class Upkeep(StoreBase):
    """Walks over lanes by an index, and marks."""

    def save(self, entry: SessionEntry) -> bool:
        """Store what a caller has changed in an entry; return whether there was anything."""
        return self._marked(self._handed_out.store_changes(entry.session_key))

    def expired_entries(self) -> Iterator[SessionEntry]:
        """Yield the lanes whose session has expired and is not finalized, the longest idle first."""
        before = self._latest_expiry()
        rows = self._idle_page(before, None)
        while rows:
            for row in rows:
                if self._is_session_expired(entry_from_row(row)):
                    yield self._handed_out.give(row)
            rows = self._idle_page(before, rows[-1]["cursor"])

    def set_expiry_finalized(self, entry: SessionEntry) -> None:
        """Note that the end of an expired session was handled, unless the lane was used meanwhile."""
        entry.expiry_finalized = True
        key, session_id, used_at = entry.session_key, entry.session_id, entry.updated_at
        self._handed_out.forget(key)

        def is_unused(row: LaneRow) -> bool:
            return row["session_id"] == session_id and local_time(row["updated_at"]) <= used_at

        self._note(
            self._connection.run_lanes(lambda lanes: change_lane(lanes, key, {"expiry_finalized": True}, is_unused))
        )

    def rebind_session(self, session_key: str, expected_session_id: str, session_id: str) -> bool:
        """Let a lane use the session that compression made; False if it uses another one than expected by now."""
        return self._marked(
            self._connection.run_lanes(lambda lanes: lanes.rebind(session_key, expected_session_id, session_id))
        )

    def resume_candidates(
        self, freshness_seconds: float = 3600, platform: Platform | None = None
    ) -> list[SessionEntry]:
        """Return the lanes that continue by themselves after a restart; with a freshness of 0 however old they are."""
        now = self._clock()
        since = now - freshness_seconds if freshness_seconds > 0 else None
        rows: list[LaneRow] = []
        page = self._resume_page(since, None)
        while page:
            rows += [row for row in page if row["resume_reason"] in RESUME_REASONS and row["origin"]]
            page = self._resume_page(since, page[-1]["cursor"])
        rows.sort(key=lambda row: row["updated_at"], reverse=True)
        chosen = [row for row in rows if platform is None or row["platform"] == platform.value]
        return [self._handed_out.give(row) for row in chosen]

    def count_restart(self, session_key: str) -> int:
        """Count a restart during which a lane was active; suspend it at the third in a row, and return the count."""
        if self._connection.run_lanes(lambda lanes: lanes.get(session_key)) is None:
            return 0

        def choose(row: LaneRow | None, now: float) -> Decision:
            if row is None:
                raise InvalidValue(f"the lane {session_key!r} was deleted meanwhile")
            count = row["restart_count"] + 1
            is_stuck = count >= STUCK_RESTARTS
            changes: LaneFields = {
                "restart_count": 0 if is_stuck else count,
                "suspended": is_stuck or row["suspended"],
            }
            return Keep(changes, touch=False)

        resolved = self._connection.run_lanes(lambda lanes: lanes.resolve(session_key, choose))
        self._note(resolved.lane)
        return 1 + (0 if resolved.before is None else resolved.before["restart_count"])

    def clear_restart_count(self, session_key: str) -> None:
        """Forget the restarts of a lane, after a turn that succeeded."""
        row = self._connection.run_lanes(lambda lanes: lanes.get(session_key))
        if row is not None and row["restart_count"]:
            self._note(
                self._connection.run_lanes(lambda lanes: lanes.update(session_key, touch=False, restart_count=0))
            )

    def _resume_page(self, since: float | None, after: str | None) -> list[LaneRow]:
        return self._connection.run_lanes(lambda lanes: lanes.resume_candidates(since, after=after, limit=_PAGE))

    def _idle_page(self, before: float, after: str | None) -> list[LaneRow]:
        return self._connection.run_lanes(lambda lanes: lanes.idle(before, after=after, limit=_PAGE))

    def _is_session_expired(self, entry: SessionEntry) -> bool:
        """Return whether a policy ends the session of an entry; marks do not count."""
        return self._policy_reason(entry, self.config.get_reset_policy(entry.platform, entry.chat_type)) is not None

    def _should_reset(self, entry: SessionEntry, source: SessionSource) -> str | None:
        """Return "idle" or "daily" if a policy ends the session of an entry, else None; marks do not count."""
        return self._policy_reason(entry, self.config.get_reset_policy(source.platform, source.chat_type))

    def _policy_reason(self, entry: SessionEntry, policy: SessionResetPolicy) -> str | None:
        unmarked = replace(entry, suspended=False, resume_pending=False)
        has_processes = self._has_processes(entry.session_key, on_error=True)
        reason = decide(unmarked, policy, self._zoned_now(self._clock()), has_processes=has_processes)
        return None if reason is None else reason.value

    def _latest_expiry(self) -> float:
        """Return a time: a lane that was active after it has not expired under any policy."""
        config, now = self.config, self._zoned_now(self._clock())
        latest = NEVER_S
        for policy in (
            config.default_reset_policy,
            *config.reset_by_type.values(),
            *config.reset_by_platform.values(),
        ):
            if policy.watches_idle:
                latest = max(latest, (now - _idle_time(policy)).timestamp())
            if policy.watches_clock:
                latest = max(latest, policy.last_boundary(now).timestamp())
        return latest


def _idle_time(policy: SessionResetPolicy) -> timedelta:
    return timedelta(minutes=min(policy.idle_minutes, 60 * 24 * 365 * 10))
