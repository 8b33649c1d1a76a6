"""When a lane starts a new session by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, Literal, get_args

from hermes.errors import InvalidValue

ResetMode = Literal["none", "idle", "daily", "both"]
MODES: Final = get_args(ResetMode)
SILENT_PLATFORMS: Final = ("api_server", "webhook")
"""Platforms whose callers are programs: they get no notice of a reset."""


@dataclass(frozen=True)
class SessionResetPolicy:
    """The reset rule of a lane: after inactivity, at an hour of the day, either, or never."""

    mode: str = "both"
    at_hour: int = 4
    idle_minutes: int = 1440
    notify: bool = True
    notify_exclude_platforms: tuple[str, ...] = SILENT_PLATFORMS
    bg_process_max_age_hours: float | None = None
    """How long after the last activity background processes prevent a reset; None is for ever."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "notify_exclude_platforms", tuple(self.notify_exclude_platforms))
        if self.mode not in MODES:
            raise InvalidValue(f"mode is {self.mode!r}, expected one of {', '.join(MODES)}")
        if type(self.at_hour) is not int or not 0 <= self.at_hour <= 23:
            raise InvalidValue(f"at_hour is {self.at_hour!r}, expected a whole number from 0 to 23")
        if type(self.idle_minutes) is not int or self.idle_minutes < 1:
            raise InvalidValue(f"idle_minutes is {self.idle_minutes!r}, expected a whole number above 0")
        age = self.bg_process_max_age_hours
        if age is not None and (isinstance(age, bool) or not isinstance(age, int | float) or not age > 0):
            raise InvalidValue(f"bg_process_max_age_hours is {age!r}, expected a number above 0")

    @property
    def watches_idle(self) -> bool:
        """Whether inactivity resets the lane."""
        return self.mode in ("idle", "both")

    @property
    def watches_clock(self) -> bool:
        """Whether the hour of the day resets the lane."""
        return self.mode in ("daily", "both")

    def last_boundary(self, now: datetime) -> datetime:
        """Return the last daily reset at or before `now`, in UTC; the hour is one of `now`'s time zone.

        A clock change moves the boundary with the clock: an hour that is skipped counts from the end of the gap, and
        an hour that happens twice counts once, the first time.
        """
        today = now.replace(hour=self.at_hour, minute=0, second=0, microsecond=0, fold=0)
        moment = _first_time(today)
        if moment > now.timestamp():
            moment = _first_time(today - timedelta(days=1))
        return datetime.fromtimestamp(moment, UTC)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; the age of processes only if it is limited."""
        data: dict[str, Any] = {
            "mode": self.mode,
            "at_hour": self.at_hour,
            "idle_minutes": self.idle_minutes,
            "notify": self.notify,
            "notify_exclude_platforms": list(self.notify_exclude_platforms),
        }
        if self.bg_process_max_age_hours is not None:
            data["bg_process_max_age_hours"] = self.bg_process_max_age_hours
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SessionResetPolicy:
        """Return the policy of `to_dict`; a missing or null value is the default, a wrong one raises ValueError."""
        names = ("mode", "at_hour", "idle_minutes", "notify", "notify_exclude_platforms", "bg_process_max_age_hours")
        return cls(**{name: data[name] for name in names if data.get(name) is not None})


def _first_time(local: datetime) -> float:
    """Return when a clock first shows a local time or, if it skips that, a later one."""
    # Not astimezone(): for a local hour that is skipped, it takes the offset of after the gap.
    moment, after_gap = local.timestamp(), local.replace(fold=1).timestamp()
    return _end_of_gap(after_gap, moment, local.tzinfo) if after_gap < moment else moment


def _end_of_gap(early: float, late: float, zone: tzinfo | None) -> float:
    """Return the time between two others at which the clock of a zone (None: the machine's) skips some hours."""
    skipped = _offset(late, zone)
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (early, middle) if _offset(middle, zone) == skipped else (middle, late)
    return late


def _offset(moment: float, zone: tzinfo | None) -> timedelta | None:
    return datetime.fromtimestamp(moment, UTC).astimezone(zone).utcoffset()
