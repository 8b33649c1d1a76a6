"""Periods: whole local days, in any time zone and across clock changes."""

from __future__ import annotations

import time
from datetime import date, timedelta

import pytest

from hermes.errors import InvalidValue
from hermes.state.usage.period import DAY_S, HOUR_S, Period, date_of, last_days
from tests.support.zones import BERLIN, KATHMANDU, LORD_HOWE, NEW_YORK, SANTIAGO, local_zone

ZONES = [BERLIN, NEW_YORK, KATHMANDU, LORD_HOWE, SANTIAGO, "UTC0", "<+14>-14", "<-12>12"]
YEAR = 365
NOON = 1_767_268_800.0
"""Twelve o'clock UTC on the first of January 2026."""


def local(period: Period, moment: float) -> float:
    """Compute in Python what the SQL of a period computes for a time."""
    offset = next(offset for since, offset in period.shifts if moment >= since or since == period.shifts[-1][0])
    return moment + offset


@pytest.mark.parametrize("zone", ZONES)
def test_every_moment_of_a_year_is_on_the_right_day_and_hour(zone: str) -> None:
    with local_zone(zone):
        period = last_days(YEAR, NOON)
        moment = period.since
        while moment < period.until:
            clock = time.localtime(moment)
            day, second = divmod(local(period, moment), DAY_S)
            assert (date_of(int(day)), second // HOUR_S) == (date(*clock[:3]), clock.tm_hour)
            moment += 1799  # visits every hour and every half hour


@pytest.mark.parametrize("zone", ZONES)
def test_a_period_has_all_of_its_days_and_nothing_else(zone: str) -> None:
    with local_zone(zone):
        for start in range(0, YEAR, 7):
            period = last_days(5, NOON - start * DAY_S)
            assert (period.last - period.first, period.days) == (timedelta(days=4), 5)
            assert date(*time.localtime(period.since)[:3]) == period.first
            assert date(*time.localtime(period.since - 1)[:3]) == period.first - timedelta(days=1)
            assert date(*time.localtime(period.until - 1)[:3]) == period.last
            assert date(*time.localtime(period.until)[:3]) == period.last + timedelta(days=1)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        (BERLIN, date(2025, 3, 30), 23),
        (BERLIN, date(2025, 10, 26), 25),
        (BERLIN, date(2025, 10, 27), 24),
        (LORD_HOWE, date(2025, 10, 5), 23.5),
        (SANTIAGO, date(2025, 9, 7), 23),
        (SANTIAGO, date(2025, 4, 5), 25),
        (KATHMANDU, date(2025, 4, 5), 24),
    ],
)
def test_a_day_has_its_real_length(zone: str, day: date, hours: float) -> None:
    with local_zone(zone):
        noon = time.mktime((day.year, day.month, day.day, 12, 0, 0, 0, 0, -1))
        period = last_days(1, noon)
        assert (period.first, period.until - period.since) == (day, hours * HOUR_S)


def test_period_of_one_day_is_today() -> None:
    with local_zone("UTC0"):
        period = last_days(1, NOON)
        assert (period.since, period.until) == (NOON - DAY_S / 2, NOON + DAY_S / 2)


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_an_invalid_number_of_days_is_refused(days: int) -> None:
    with pytest.raises(InvalidValue, match="days"):
        last_days(days, NOON)


def test_a_hundred_years_can_be_asked_for() -> None:
    with local_zone(NEW_YORK):
        assert f"{last_days(36_500, NOON).first}" == "1926-01-27"
