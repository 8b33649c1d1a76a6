"""When a lane starts a new session: every mode, strict limits, priorities, zones and clock changes."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import InvalidValue
from hermes.gateway import SessionEntry, SessionResetPolicy, decide
from tests.support.zones import BERLIN as RULES
from tests.support.zones import local_zone

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 6, 10, 12, 0, tzinfo=BERLIN)


def entry(updated: datetime, **flags: bool) -> SessionEntry:
    return SessionEntry("k", "s", updated, updated, **flags)  # type: ignore[arg-type]


def reason(policy: SessionResetPolicy, updated: datetime, now: datetime = NOON, **more: bool) -> str | None:
    has_processes = more.pop("has_processes", False)
    return decide(entry(updated, **more), policy, now, has_processes=has_processes)


@pytest.mark.parametrize(
    ("mode", "idle_for", "expected"),
    [
        ("none", timedelta(days=400), None),
        ("idle", timedelta(minutes=60), None),
        ("idle", timedelta(minutes=60, microseconds=1), "idle"),
        ("idle", timedelta(minutes=59), None),
        ("daily", timedelta(hours=7, minutes=59), None),
        ("daily", timedelta(hours=8), None),
        ("daily", timedelta(hours=8, microseconds=1), "daily"),
        ("both", timedelta(minutes=59), None),
        ("both", timedelta(minutes=61), "idle"),
        ("both", timedelta(days=3), "idle"),
        ("idle", timedelta(seconds=-3600), None),
    ],
)
def test_limits_are_strict(mode: str, idle_for: timedelta, expected: str | None) -> None:
    assert reason(SessionResetPolicy(mode=mode, idle_minutes=60), NOON - idle_for) == expected


def test_daily_counts_under_both_before_the_idle_limit() -> None:
    assert reason(SessionResetPolicy(), NOON - timedelta(hours=9)) == "daily"


@pytest.mark.parametrize(
    ("hour", "updated", "expected"),
    [
        (3, datetime(2026, 6, 9, 4, 1, tzinfo=BERLIN), None),
        (3, datetime(2026, 6, 9, 3, 59, tzinfo=BERLIN), "daily"),
        (4, datetime(2026, 6, 10, 3, 59, tzinfo=BERLIN), "daily"),
        (4, datetime(2026, 6, 10, 4, 0, tzinfo=BERLIN), None),
    ],
)
def test_daily_boundary_before_and_after_the_hour(hour: int, updated: datetime, expected: str | None) -> None:
    now = datetime(2026, 6, 10, hour, 0, tzinfo=BERLIN)
    assert reason(SessionResetPolicy(mode="daily"), updated, now) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"suspended": True}, "suspended"),
        ({"suspended": True, "resume_pending": True}, "suspended"),
        ({"suspended": True, "has_processes": True}, "suspended"),
        ({"resume_pending": True}, None),
        ({"has_processes": True}, None),
        ({}, "idle"),
    ],
)
def test_priority_of_flags(flags: dict[str, bool], expected: str | None) -> None:
    assert reason(SessionResetPolicy(), NOON - timedelta(days=9), NOON, **flags) == expected


def test_suspended_lane_resets_even_without_a_policy() -> None:
    assert reason(SessionResetPolicy(mode="none"), NOON, suspended=True) == "suspended"


@pytest.mark.parametrize(("limit", "expected"), [(None, None), (24.0, "idle"), (24 * 30, None)])
def test_processes_prevent_a_reset_for_ever_unless_limited(limit: float | None, expected: str | None) -> None:
    policy = SessionResetPolicy(bg_process_max_age_hours=limit)
    assert reason(policy, NOON - timedelta(days=9), has_processes=True) == expected


def test_zone_of_now_decides_about_the_daily_hour() -> None:
    policy = SessionResetPolicy(mode="daily", at_hour=4)
    now = datetime(2026, 6, 10, 3, 0, tzinfo=UTC)
    updated = now - timedelta(hours=2)
    assert decide(entry(updated), policy, now, has_processes=False) is None
    assert decide(entry(updated), policy, now.astimezone(BERLIN), has_processes=False) == "daily"


@pytest.mark.parametrize("at_hour", range(24))
@pytest.mark.parametrize("day", [datetime(2026, 3, 29), datetime(2026, 10, 25), datetime(2026, 6, 10)])  # noqa: DTZ001
def test_each_day_has_one_boundary_also_when_clocks_change(day: datetime, at_hour: int) -> None:
    policy = SessionResetPolicy(mode="daily", at_hour=at_hour)
    start = day.replace(tzinfo=BERLIN).astimezone(UTC)
    moments = [start + timedelta(minutes=10 * step) for step in range(6 * 26)]
    boundaries = [policy.last_boundary(moment.astimezone(BERLIN)) for moment in moments]
    assert boundaries == sorted(boundaries)
    assert all(boundary <= moment for boundary, moment in zip(boundaries, moments, strict=True))
    end = (day + timedelta(days=1)).replace(tzinfo=BERLIN).astimezone(UTC)
    assert len({each for each, moment in zip(boundaries, moments, strict=True) if start <= each and moment < end}) == 1


@pytest.mark.parametrize("at_hour", range(24))
@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25", "2026-06-10"])
def test_zone_of_the_machine_has_the_same_boundaries(day: str, at_hour: int) -> None:
    policy = SessionResetPolicy(mode="daily", at_hour=at_hour)
    start = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    with local_zone(RULES):
        for step in range(48):
            moment = start + timedelta(minutes=30 * step)
            local = datetime.fromtimestamp(moment.timestamp())  # noqa: DTZ006
            assert policy.last_boundary(local) == policy.last_boundary(moment.astimezone(BERLIN))


@pytest.mark.parametrize("zone", ["Antarctica/Troll", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia"])
@pytest.mark.parametrize("day", [date(2011, 12, 29), date(2018, 11, 3), date(2026, 3, 28), date(2026, 10, 24)])
@pytest.mark.parametrize("at_hour", [0, 1, 2, 3, 4, 23])
def test_boundary_is_never_in_the_future_and_never_moves_back(zone: str, day: date, at_hour: int) -> None:
    policy = SessionResetPolicy(mode="daily", at_hour=at_hour)
    start = datetime.combine(day, time(), UTC)
    moments = [start + timedelta(minutes=10 * step) for step in range(6 * 72)]
    boundaries = [policy.last_boundary(moment.astimezone(ZoneInfo(zone))) for moment in moments]
    assert boundaries == sorted(boundaries)
    assert all(boundary <= moment for boundary, moment in zip(boundaries, moments, strict=True))


def test_hour_that_happens_twice_resets_once() -> None:
    policy = SessionResetPolicy(mode="daily", at_hour=2)
    first = datetime(2026, 10, 25, 2, 30, fold=0, tzinfo=BERLIN)
    second = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=BERLIN)
    assert decide(entry(first), policy, second, has_processes=False) is None


def test_idle_time_is_real_time_across_a_clock_change() -> None:
    policy = SessionResetPolicy(mode="idle", idle_minutes=120)
    before = datetime(2026, 3, 29, 1, 30, tzinfo=BERLIN)
    assert decide(entry(before), policy, datetime(2026, 3, 29, 4, 0, tzinfo=BERLIN), has_processes=False) is None
    assert decide(entry(before), policy, datetime(2026, 3, 29, 4, 31, tzinfo=BERLIN), has_processes=False) == "idle"


def test_enormous_idle_limit_never_overflows() -> None:
    assert reason(SessionResetPolicy(mode="idle", idle_minutes=10**15), NOON - timedelta(days=9000)) is None


@given(
    seconds=st.integers(-(10**6), 10**7),
    zone=st.sampled_from(["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]),
    at_hour=st.integers(0, 23),
    start=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
)
def test_reset_once_due_stays_due(seconds: int, zone: str, at_hour: int, start: datetime) -> None:
    updated = start.replace(tzinfo=UTC)
    now = (updated + timedelta(seconds=seconds)).astimezone(ZoneInfo(zone))
    later = (now.astimezone(UTC) + timedelta(hours=1)).astimezone(ZoneInfo(zone))
    policy = SessionResetPolicy(at_hour=at_hour, idle_minutes=3000)
    if reason(policy, updated, now) is not None:
        assert reason(policy, updated, later) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "weekly"},
        {"mode": ""},
        {"at_hour": 25},
        {"at_hour": -1},
        {"at_hour": True},
        {"at_hour": "4"},
        {"idle_minutes": 0},
        {"idle_minutes": -5},
        {"idle_minutes": 1.5},
        {"bg_process_max_age_hours": 0},
        {"bg_process_max_age_hours": "x"},
    ],
)
def test_wrong_policy_names_the_field_and_the_value(wrong: dict[str, object]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(InvalidValue, match=name) as caught:
        SessionResetPolicy.from_dict({"mode": "both", **wrong}) if value != "" else SessionResetPolicy(mode="")
    assert repr(value) in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_defaults_of_a_policy() -> None:
    policy = SessionResetPolicy()
    assert (policy.mode, policy.at_hour, policy.idle_minutes, policy.notify) == ("both", 4, 1440, True)
    assert policy.notify_exclude_platforms == ("api_server", "webhook")
    assert SessionResetPolicy.from_dict({"mode": None, "at_hour": None, "idle_minutes": None}) == policy
    assert SessionResetPolicy.from_dict(policy.to_dict()) == policy
