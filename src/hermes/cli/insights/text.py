"""Insights on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hermes.cli.display.table import GAP, LEAST_WIDTH, Column, format_table
from hermes.cli.display.terminal import display_width, heading, pad, printable
from hermes.cli.display.times import ago
from hermes.cli.display.wrapping import wrap_text
from hermes.cli.insights.figures import money, number, percent
from hermes.cli.insights.series import LEVELS, PLAIN_LEVELS, bar_length, sparkline, split_days
from hermes.cli.insights.words import (
    MEASURES,
    NO_TITLE,
    Fact,
    conversation_name,
    cost_facts,
    format_cost,
    format_value,
    overview_facts,
    reasoning_note,
    report_title,
    token_counts,
)
from hermes.phrases import counted
from hermes.state.usage.activity import HOURS, WEEKDAYS
from hermes.state.usage.insights import Insights
from hermes.state.usage.totals import UsageTotals

INDENT = "  "
BLOCK = "█"
LONGEST_LINE, LONGEST_BAR, SHORTEST_BAR = 60, 30, 6
MOST_MODELS, MOST_TOOLS, MOST_SKILLS, MOST_PEAKS = 20, 15, 10, 5


class TextLayout(NamedTuple):
    """What the report is written on: so many columns, for the characters of an encoding."""

    width: int
    encoding: str = "utf-8"

    @property
    def room(self) -> int:
        """The columns beside the indent."""
        return max(LEAST_WIDTH, self.width - len(INDENT))

    @property
    def levels(self) -> str:
        """What small bars are made of."""
        return LEVELS if self.shown(LEVELS) == LEVELS else PLAIN_LEVELS

    def shown(self, text: str) -> str:
        """A name as it will be read here, so that it can be told how wide it is."""
        return printable(text).encode(self.encoding, "backslashreplace").decode(self.encoding)


def format_report(found: Insights, sheet: TextLayout, now: float) -> list[str]:
    """The whole report, section by section; one without content is left out."""
    lines = [heading(sheet.shown(report_title(found)))]
    for name, section in (
        ("Overview", _facts(overview_facts(found), sheet)),
        ("Tokens", _tokens(found.overview.usage, sheet)),
        ("Cost", _facts(cost_facts(found), sheet)),
        ("Models", _models(found, sheet)),
        ("Platforms", _platforms(found, sheet)),
        ("Tools", _tools(found, sheet)),
        ("Skills", _skills(found, sheet, now)),
        ("Activity", _activity(found, sheet)),
        ("Notable conversations", _notable(found, sheet)),
    ):
        if section:
            lines += ["", heading(name), *(f"{INDENT}{line}".rstrip() for line in section)]
    return lines


def _facts(facts: Iterable[Fact], sheet: TextLayout) -> list[str]:
    """Facts below each other, the values by their last digits, the notes wrapped beside them."""
    every = list(facts)
    names = max((len(each.name) for each in every), default=0)
    values = max((len(each.value) for each in every), default=0)
    lines = []
    for each in every:
        start = f"{each.name:<{names}}{' ' * GAP}{each.value:>{values}}{' ' * GAP}"
        first, *more = wrap_text(sheet.shown(each.note), max(LEAST_WIDTH, sheet.room - len(start)))
        lines += [start + first, *(" " * len(start) + line for line in more)]
    return lines


def _tokens(usage: UsageTotals, sheet: TextLayout) -> list[str]:
    if not usage.total_tokens:
        return []
    kinds = token_counts(usage)
    shares = [percent(count / usage.total_tokens) for count in kinds.values()]
    columns = [
        Column("", [*kinds, "Total"], is_elastic=True),
        _right("", [*map(number, kinds.values()), number(usage.total_tokens)]),
        _right("", [*shares, ""]),
    ]
    rows = _table(columns, sheet, bars=[*kinds.values(), 0])[2:]
    return [*rows, *filter(None, [reasoning_note(usage)])]


def _models(found: Insights, sheet: TextLayout) -> list[str]:
    shown = found.models[:MOST_MODELS]
    columns = [
        Column("Model", [sheet.shown(each.model) for each in shown], is_elastic=True),
        _right("Tokens", [number(each.usage.total_tokens) for each in shown]),
        _right("Cost", [format_cost(each.usage) for each in shown]),
        _right("Calls", [number(each.usage.api_calls) for each in shown]),
        _right("Conversations", [number(each.conversations) for each in shown]),
    ]
    bars = [each.usage.total_tokens for each in shown]
    return [*_table(columns, sheet, bars=bars), *_more(len(found.models) - len(shown))]


def _platforms(found: Insights, sheet: TextLayout) -> list[str]:
    some = found.platforms
    columns = [
        Column("Platform", [sheet.shown(each.source) for each in some], is_elastic=True),
        _right("Conversations", [number(each.conversations) for each in some]),
        _right("Messages", [number(each.messages) for each in some]),
        _right("Cost", [format_cost(each.usage) for each in some]),
        _right("Tokens", [number(each.usage.total_tokens) for each in some]),
        _right("Tool calls", [number(each.tool_calls) for each in some]),
    ]
    return _table(columns, sheet)


def _tools(found: Insights, sheet: TextLayout) -> list[str]:
    shown = found.tools[:MOST_TOOLS]
    columns = [
        Column("Tool", [sheet.shown(each.tool) for each in shown], is_elastic=True),
        _right("Calls", [number(each.calls) for each in shown]),
        _right("Share", [percent(each.share) for each in shown]),
    ]
    bars = [each.calls for each in shown]
    return [*_table(columns, sheet, bars=bars), *_more(len(found.tools) - len(shown))]


def _skills(found: Insights, sheet: TextLayout, now: float) -> list[str]:
    shown = found.skills[:MOST_SKILLS]
    if not shown:
        return []
    columns = [
        Column("Skill", [sheet.shown(each.skill) for each in shown], is_elastic=True),
        _right("Loads", [number(each.loads) for each in shown]),
        _right("Edits", [number(each.edits) for each in shown]),
        Column("Last used", [ago(each.last_used_at, now) for each in shown]),
    ]
    uses = counted(sum(each.uses for each in found.skills), "time")
    every = f"{counted(len(found.skills), 'skill')} used {uses}"
    return [*_table(columns, sheet), *_more(len(found.skills) - len(shown)), every]


def _activity(found: Insights, sheet: TextLayout) -> list[str]:
    activity = found.activity
    if not activity.active_days:
        return []
    return [*_days(found, sheet), "", *_weekdays(activity.weekdays, sheet), "", *_hours(activity.hours, sheet)]


def _days(found: Insights, sheet: TextLayout) -> list[str]:
    some = split_days(found.period, found.activity, sheet.room)
    length = (some[-1].last - some[-1].first).days + 1
    span = "a day" if length == 1 else f"in {length} days"
    said, spent = [each.messages for each in some], [each.cost_usd for each in some]
    wide = max(1, min(sheet.room, LONGEST_LINE) // len(some))
    lines = [f"Messages, at most {number(max(said))} {span}", _line(said, wide, sheet)]
    if any(spent):
        lines += [f"Cost, at most {money(max(spent))} {span}", _line(spent, wide, sheet)]
    first, last = f"{found.period.first}", f"{found.period.last}"
    between = wide * len(some) - len(first) - len(last)
    return [*lines, f"{first}{' ' * between}{last}"] if between > 0 else lines


def _weekdays(counts: Sequence[int], sheet: TextLayout) -> list[str]:
    columns = [Column("", WEEKDAYS, is_elastic=True), _right("", [number(each) for each in counts])]
    return _table(columns, sheet, bars=counts)[2:]


def _hours(counts: Sequence[int], sheet: TextLayout) -> list[str]:
    wide = 2 if sheet.room >= 2 * HOURS else 1
    marks = "".join(f"{hour:<{6 * wide}}" for hour in range(0, HOURS, 6))
    peaks = sorted((hour for hour in range(HOURS) if counts[hour]), key=lambda hour: (-counts[hour], hour))
    busiest = ", ".join(f"{hour:02}:00 ({number(counts[hour])})" for hour in peaks[:MOST_PEAKS])
    return [
        "Messages by the hour of the day",
        _line(counts, wide, sheet),
        marks,
        *wrap_text(f"Busiest: {busiest}", sheet.room),
    ]


def _line(values: Sequence[float], wide: int, sheet: TextLayout) -> str:
    """Small bars, each so many columns wide."""
    return "".join(bar * wide for bar in sparkline(values, sheet.levels))


def _notable(found: Insights, sheet: TextLayout) -> list[str]:
    some = found.notable
    if not some:
        return []
    columns = [
        Column("Most", [MEASURES[each.measure] for each in some]),
        _right("", [format_value(each) for each in some]),
        Column("Title", [sheet.shown(conversation_name(each)) or NO_TITLE for each in some], is_elastic=True),
        Column("ID", [sheet.shown(each.id) for each in some]),
    ]
    return format_table(columns, sheet.room)


def _table(columns: Sequence[Column], sheet: TextLayout, bars: Sequence[float] = ()) -> list[str]:
    """A table with bars beside it where there is room; where there is not, its last columns are left out."""
    if not columns[0].cells:
        return []
    fitting = list(columns)
    while len(fitting) > 2 and _width(fitting, cut=True) > sheet.room:
        fitting.pop()
    header, rule, *rows = format_table(fitting, sheet.room)
    room = min(sheet.room - len(rule) - GAP, LONGEST_BAR)
    if not bars or room < SHORTEST_BAR:
        return [header, rule, *rows]
    beside = [BLOCK * bar_length(value, max(bars), room) for value in bars]
    rows = [pad(row, len(rule) + GAP) + bar for row, bar in zip(rows, beside, strict=True)]
    return [header, rule + rule[:1] * (GAP + max(map(len, beside))), *rows]


def _width(columns: Sequence[Column], *, cut: bool = False) -> int:
    """How wide a table is, or can be if elastic columns are cut."""
    widths = [min(each.widest(), LEAST_WIDTH) if cut and each.is_elastic else each.widest() for each in columns]
    return sum(widths) + GAP * (len(widths) - 1)


def _right(header: str, cells: Sequence[str]) -> Column:
    """A column of numbers."""
    width = max((display_width(each) for each in (header, *cells)), default=0)
    return Column(f"{header:>{width}}", [f"{each:>{width}}" for each in cells])


def _more(count: int) -> list[str]:
    return [f"… and {count} more"] if count > 0 else []
