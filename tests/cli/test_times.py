"""Parsing points in time as users type them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hermes.cli.display.times import parse_moment

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
NOW = 1_774_791_000.0
"""Half past three in the afternoon of 2026-03-29 in Berlin, a day that has 23 hours."""
MINUTE, HOUR, DAY = 60, 3600, 86_400
JANUARY_31 = 1_769_814_000.0
MARCH_29 = 1_774_738_800.0


@pytest.fixture(autouse=True)
def in_berlin() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", BERLIN)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("text", "age_s"),
    [
        ("30m", 30 * MINUTE),
        ("12h", 12 * HOUR),
        ("7d", 7 * DAY),
        ("2w", 14 * DAY),
        ("2W", 14 * DAY),
        (" 1h ", HOUR),
        ("0m", 0),
    ],
)
@pytest.mark.parametrize("is_end", [False, True])
def test_an_age_is_counted_back_from_now(text: str, age_s: int, is_end: bool) -> None:
    assert parse_moment(text, NOW, is_end=is_end) == NOW - age_s


@pytest.mark.parametrize(
    ("text", "start", "next_start"),
    [
        ("2026-01-31", JANUARY_31, JANUARY_31 + DAY),
        ("20260131", JANUARY_31, JANUARY_31 + DAY),
        ("2026-03-29", MARCH_29, MARCH_29 + 23 * HOUR),
        ("today", MARCH_29, MARCH_29 + 23 * HOUR),
        ("Yesterday", MARCH_29 - DAY, MARCH_29),
    ],
)
def test_day_reaches_from_its_start_to_its_end(text: str, start: float, next_start: float) -> None:
    end = parse_moment(text, NOW, is_end=True)
    assert parse_moment(text, NOW) == start
    assert end is not None
    assert next_start - 0.000_01 < end < next_start


@pytest.mark.parametrize("is_end", [False, True])
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T10:00", JANUARY_31 + 10 * HOUR),
        ("2026-01-31 10:00", JANUARY_31 + 10 * HOUR),
        ("2026-01-31T10:00:30", JANUARY_31 + 10 * HOUR + 30),
        ("2026-01-31t10:00z", JANUARY_31 + 11 * HOUR),
        ("2026-01-31T10:00+05:30", JANUARY_31 + 5.5 * HOUR),
    ],
)
def test_a_time_of_day_is_that_moment(text: str, moment: float, is_end: bool) -> None:
    assert parse_moment(text, NOW, is_end=is_end) == moment


def test_the_last_day_of_the_calendar_has_an_end() -> None:
    assert parse_moment("9999-12-31", NOW, is_end=True) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "tomorrow",
        "7",
        "d",
        "-7d",
        "1.5h",
        "7 d",
        "7y",
        "1000000000d",
        "٧d",
        "2026-02-30",
        "2026-13-01",
        "2026-01",
        "31.01.2026",
        "10:00",
        "2026-01-31T25:00",
        "0000-00-00",
        "2026-01-31T10:00 x",
        "\x1b[31m",
    ],
)
def test_other_text_is_not_a_moment(text: str) -> None:
    assert parse_moment(text, NOW) is None
