"""Insights as text on terminals of every width."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.cli.display.terminal import display_width
from hermes.cli.insights.figures import duration, money
from hermes.cli.insights.series import LEVELS, PLAIN_LEVELS, sparkline, split_days
from hermes.cli.insights.text import TextLayout, format_report
from hermes.cli.insights.words import format_cost
from hermes.state.usage.aggregates import Sums, ToolCell
from hermes.state.usage.totals import UsageTotals
from tests.support.sums import NOON, SUMS, sample

GOLDEN = Path(__file__).parent / "golden"


def lines_of(sums: Sums = SUMS, *, width: int = 80, encoding: str = "utf-8", days: int = 30) -> list[str]:
    return format_report(sample(sums, days), TextLayout(width, encoding), NOON)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_report_equals_the_golden_file(width: int) -> None:
    assert "\n".join(lines_of(width=width)) + "\n" == (GOLDEN / f"insights-{width}.txt").read_text("utf-8")


def test_report_without_unicode_equals_the_golden_file() -> None:
    expected = (GOLDEN / "insights-ascii.txt").read_text("ascii")
    assert "\n".join(lines_of(encoding="ascii")).translate(str.maketrans("─█…", "-#~")) + "\n" == expected


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("days", [1, 2, 7, 30, 365, 36_500])
def test_report_fits_the_terminal(days: int, encoding: str) -> None:
    found = sample(SUMS._replace(messages=SUMS.messages[:5], usage=SUMS.usage[:1]), days)
    for width in (*range(60, 200, 7), 200):
        assert max(map(display_width, format_report(found, TextLayout(width, encoding), NOON))) <= width


@pytest.mark.parametrize("width", [1, 20, 40])
def test_report_works_on_tiny_terminals(width: int) -> None:
    assert lines_of(width=width)


def test_sections_without_content_are_left_out() -> None:
    only_tools = Sums(tools=[ToolCell("cli", "terminal", 1)])
    assert [line for line in lines_of(only_tools) if line and not line.startswith(" ")][1:] == ["Overview", "Tools"]


def test_report_escapes_control_characters_in_names() -> None:
    hostile = "\x1b[31m\x07\u202e\udc80"
    tools = Sums(tools=[ToolCell("cli", hostile, 1)])
    assert all(char.isprintable() for line in lines_of(tools) for char in line)


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0, "$0.00"), (0.01, "$0.01"), (0.0042, "$0.0042"), (1234.5, "$1,234.50"), (-2.5, "-$2.50"), (1e-9, "$1e-09")],
)
def test_small_amounts_keep_their_first_digits(usd: float, text: str) -> None:
    assert money(usd) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (45.9, "45s"), (720, "12m"), (7500, "2h 5m"), (10_800, "3h"), (10_859, "3h"), (129_600, "1.5d")],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([0, 0], "  "),
        ([1, 2, 4, 8], "▁▂▄█"),
        ([0, 1, 1_000_000], " ▁█"),
        ([5], "█"),
    ],
)
def test_every_value_above_zero_has_a_visible_bar(values: list[float], line: str) -> None:
    assert sparkline(values) == line


def test_plain_levels_are_as_many_as_unicode_levels() -> None:
    assert len(PLAIN_LEVELS) == len(LEVELS)
    assert PLAIN_LEVELS.isascii()


@pytest.mark.parametrize(("days", "most", "length", "count"), [(30, 30, 1, 30), (30, 29, 2, 15), (31, 10, 4, 8)])
def test_days_are_joined_until_they_fit(days: int, most: int, length: int, count: int) -> None:
    found = sample(days=days)
    parts = split_days(found.period, found.activity, most)
    assert len(parts) == count <= most
    assert (parts[0].first, parts[-1].last) == (found.period.first, found.period.last)
    assert {(part.last - part.first).days + 1 for part in parts[1:]} == {length}
    assert sum(part.messages for part in parts) == found.overview.messages
    assert sum(part.tokens for part in parts) == found.overview.usage.total_tokens


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (UsageTotals(input_tokens=10, cost_usd=2.5), "$2.50"),
        (UsageTotals(input_tokens=10, cost_usd=2.5, unpriced_tokens=4), "$2.50+"),
        (UsageTotals(input_tokens=10, unpriced_tokens=10), "unknown"),
        (UsageTotals(input_tokens=10, included_tokens=10), "included"),
        (UsageTotals(), ""),
    ],
)
def test_cost_marks_unknown_parts(usage: UsageTotals, cost: str) -> None:
    assert format_cost(usage) == cost
