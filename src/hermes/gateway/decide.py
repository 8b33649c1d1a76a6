"""The one decision whether a lane starts a new session; pure, so that lookup, recovery and expiry always agree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from hermes.gateway.entry import SessionEntry
from hermes.gateway.policy import SessionResetPolicy

_MICROSECOND = timedelta(microseconds=1)
_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE


class ResetReason(StrEnum):
    """Why a lane starts a new session."""

    SUSPENDED = "suspended"
    IDLE = "idle"
    DAILY = "daily"


def decide(
    entry: SessionEntry, policy: SessionResetPolicy, now: datetime, *, has_processes: bool
) -> ResetReason | None:
    """Return why this lane must start a new session at `now`, or None to keep it.

    The zone of `now` is the zone of the daily hour; a time without zone is local.
    """
    if entry.suspended:
        return ResetReason.SUSPENDED
    if entry.resume_pending or policy.mode == "none":
        return None
    idle = (now.astimezone(UTC) - entry.updated_at.astimezone(UTC)) // _MICROSECOND
    if has_processes and not _is_veto_over(idle, policy.bg_process_max_age_hours):
        return None
    if policy.watches_idle and idle > policy.idle_minutes * _MINUTE:
        return ResetReason.IDLE
    if policy.watches_clock and entry.updated_at.astimezone(UTC) < policy.last_boundary(now):
        return ResetReason.DAILY
    return None


def _is_veto_over(idle: int, max_age_hours: float | None) -> bool:
    return max_age_hours is not None and idle > max_age_hours * _HOUR
