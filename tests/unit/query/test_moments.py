"""The time that a question names."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from hermes.query.moments import TimeHint, parse_time_hint

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("What happened on 8 May, 2023?", TimeHint(2023, 5, 8)),
        ("What happened on May 25, 2023?", TimeHint(2023, 5, 25)),
        ("Where did we camp in July?", TimeHint(None, 7)),
        ("What did we do in 2022?", TimeHint(2022)),
        ("the meeting of 2026-05-19", TimeHint(2026, 5, 19)),
        ("am 08.05.2026", TimeHint(2026, 5, 8)),
        ("Was ergab der Termin am 11. März?", TimeHint(None, 3, 11)),
        ("张伟7月去了哪个城市？", TimeHint(None, 7)),
        ("12월 5일", TimeHint(None, 12, 5)),
        ("what did I say yesterday", TimeHint(first=date(2026, 11, 17), last=date(2026, 11, 17))),
        ("when did we talk about May 8?", TimeHint(None, 5, 8)),
        ("张伟去年5月去了哪里", TimeHint(2025, 5)),
        ("去年做了什么", TimeHint(2025)),
        ("작년 3월", TimeHint(2025, 3)),
        ("what broke in the last 3 days", TimeHint(first=date(2026, 11, 15), last=date(2026, 11, 18))),
        ("over the past two weeks", TimeHint(first=date(2026, 11, 4), last=date(2026, 11, 18))),
        ("was war diese Woche", TimeHint(first=date(2026, 11, 11), last=date(2026, 11, 18))),
        ("3 days ago", TimeHint(first=date(2026, 11, 15), last=date(2026, 11, 15))),
    ],
)
def test_named_time_is_read(text: str, hint: TimeHint) -> None:
    assert parse_time_hint(text, NOW) == hint


@pytest.mark.parametrize(
    "text",
    [
        "Was haben wir hier besprochen?",
        "life on Mars",
        "build 12 may fail",
        "you may 8 times",
        "you may buy 2 apples",
        "port 2024 error",
        "error code 2100",
        "9999-99-99",
        "march on",
        "",
    ],
)
def test_text_that_names_no_time_gives_no_hint(text: str) -> None:
    assert parse_time_hint(text, NOW) is None


@pytest.mark.parametrize(("day", "fit"), [(8, 2.0), (9, 1.0)])
def test_the_very_day_fits_better_than_its_month(day: int, fit: float) -> None:
    assert TimeHint(2023, 5, 8).fit(datetime(2023, 5, day, 12).astimezone().timestamp()) == fit


@pytest.mark.parametrize("timestamp", [float("inf"), float("nan"), 1e300, -1e300])
def test_impossible_moment_fits_nothing(timestamp: float) -> None:
    assert TimeHint(2023).fit(timestamp) == 0.0
