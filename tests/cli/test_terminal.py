"""Safe text, widths and ages on the terminal."""

from __future__ import annotations

import pytest

from hermes.cli.display.terminal import clip, display_width, pad, printable
from hermes.cli.display.times import ago

NOW = 1_794_776_749.0
MINUTE, HOUR, DAY = 60, 3600, 86_400


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand\r\nmore", "two lines and  more"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("back\x08space\x7f", r"back\x08space\x7f"),
        ("abc\u202ecba", r"abc\u202ecba"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("half \ud83d", r"half \ud83d"),
        ("👨\u200d👩\u200d👧 日本 é", "👨\u200d👩\u200d👧 日本 é"),
    ],
)
def test_control_characters_are_shown_by_number(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("plain", 5),
        ("naïve — “so”…", 13),
        ("日本語", 6),
        ("👍🏽", 2),
        ("👨\u200d👩\u200d👧", 2),
        ("e\u0301", 1),
        ("🇩🇪", 2),
    ],
)
def test_width_is_counted_in_columns(text: str, columns: int) -> None:
    assert display_width(text) == columns


@pytest.mark.parametrize(
    ("text", "width", "kept"),
    [
        ("fits", 4, "fits"),
        ("does not fit", 8, "does no…"),
        ("does not fit", 6, "does…"),
        ("日本語です", 10, "日本語です"),
        ("日本語です", 8, "日本語…"),
        ("日本語です", 9, "日本語で…"),
        ("ok 👨\u200d👩\u200d👧 ok", 6, "ok 👨\u200d👩\u200d👧…"),
        ("ok 👨\u200d👩\u200d👧 ok", 5, "ok…"),
        ("cafe\u0301 olé", 5, "cafe\u0301…"),
    ],
)
def test_clipping_never_splits_a_character(text: str, width: int, kept: str) -> None:
    assert clip(text, width) == kept
    assert display_width(clip(text, width)) <= width


def test_padding_counts_columns() -> None:
    assert pad("日本", 6) == "日本  "


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [
        (-HOUR, "just now"),
        (0, "just now"),
        (59, "just now"),
        (MINUTE, "1m ago"),
        (HOUR - 1, "59m ago"),
        (2 * HOUR + 5, "2h ago"),
        (DAY - 1, "23h ago"),
        (DAY, "yesterday"),
        (2 * DAY - 1, "yesterday"),
        (3 * DAY, "3d ago"),
        (7 * DAY - 1, "6d ago"),
    ],
)
def test_recent_moment_is_shown_as_an_age(age_s: float, expected: str) -> None:
    assert ago(NOW - age_s, NOW) == expected


def test_moment_after_a_week_is_shown_as_a_date() -> None:
    assert ago(NOW - 30 * DAY, NOW) == "2026-10-16"


@pytest.mark.parametrize("moment", [None, 0, "yesterday", -1e18])
def test_unknown_moment_is_a_question_mark(moment: object) -> None:
    assert ago(moment, NOW) == "?"
