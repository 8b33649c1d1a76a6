"""Insights as text for a terminal."""

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
from hermes.phrases import plural
from hermes.state.usage.activity import HOURS, WEEKDAYS
from hermes.state.usage.insights import Insights
from hermes.state.usage.totals import UsageTotals

INDENT = "  "
BLOCK = "█"
LONGEST_LINE, LONGEST_BAR, SHORTEST_BAR = 60, 30, 6
MOST_MODELS, MOST_TOOLS, MOST_SKILLS, MOST_PEAKS = 20, 15, 10, 5


class TextLayout(NamedTuple):
    """The width of the terminal and the encoding of its characters."""

    width: int
    encoding: str = "utf-8"

    @property
    def inner_width(self) -> int:
        """The width without the indent."""
        return max(LEAST_WIDTH, self.width - len(INDENT))

    @property
    def levels(self) -> str:
        """The characters for small bars."""
        return LEVELS if self.display_text(LEVELS) == LEVELS else PLAIN_LEVELS

    def display_text(self, text: str) -> str:
        """Return text as the terminal shows it, so that its width can be measured."""
        return printable(text).encode(self.encoding, "backslashreplace").decode(self.encoding)


def format_report(found: Insights, layout: TextLayout, now: float) -> list[str]:
    """Format the report; sections without content are left out."""
    lines = [heading(layout.display_text(report_title(found)))]
    for name, section in (
        ("Overview", _facts(overview_facts(found), layout)),
        ("Tokens", _tokens(found.overview.usage, layout)),
        ("Cost", _facts(cost_facts(found), layout)),
        ("Models", _models(found, layout)),
        ("Platforms", _platforms(found, layout)),
        ("Tools", _tools(found, layout)),
        ("Skills", _skills(found, layout, now)),
        ("Activity", _activity(found, layout)),
        ("Notable conversations", _notable(found, layout)),
    ):
        if section:
            lines += ["", heading(name), *(f"{INDENT}{line}".rstrip() for line in section)]
    return lines


def _facts(facts: Iterable[Fact], layout: TextLayout) -> list[str]:
    """Format facts in rows, with values aligned right and notes wrapped."""
    every = list(facts)
    names = max((len(each.name) for each in every), default=0)
    values = max((len(each.value) for each in every), default=0)
    lines = []
    for each in every:
        start = f"{each.name:<{names}}{' ' * GAP}{each.value:>{values}}{' ' * GAP}"
        first, *more = wrap_text(layout.display_text(each.note), max(LEAST_WIDTH, layout.inner_width - len(start)))
        lines += [start + first, *(" " * len(start) + line for line in more)]
    return lines


def _tokens(usage: UsageTotals, layout: TextLayout) -> list[str]:
    if not usage.total_tokens:
        return []
    kinds = token_counts(usage)
    shares = [percent(count / usage.total_tokens) for count in kinds.values()]
    columns = [
        Column("", [*kinds, "Total"], is_elastic=True),
        _right("", [*map(number, kinds.values()), number(usage.total_tokens)]),
        _right("", [*shares, ""]),
    ]
    rows = _table(columns, layout, bars=[*kinds.values(), 0])[2:]
    return [*rows, *filter(None, [reasoning_note(usage)])]


def _models(found: Insights, layout: TextLayout) -> list[str]:
    shown = found.models[:MOST_MODELS]
    columns = [
        Column("Model", [layout.display_text(each.model) for each in shown], is_elastic=True),
        _right("Tokens", [number(each.usage.total_tokens) for each in shown]),
        _right("Cost", [format_cost(each.usage) for each in shown]),
        _right("Calls", [number(each.usage.api_calls) for each in shown]),
        _right("Conversations", [number(each.conversations) for each in shown]),
    ]
    bars = [each.usage.total_tokens for each in shown]
    return [*_table(columns, layout, bars=bars), *_more(len(found.models) - len(shown))]


def _platforms(found: Insights, layout: TextLayout) -> list[str]:
    some = found.platforms
    columns = [
        Column("Platform", [layout.display_text(each.source) for each in some], is_elastic=True),
        _right("Conversations", [number(each.conversations) for each in some]),
        _right("Messages", [number(each.messages) for each in some]),
        _right("Cost", [format_cost(each.usage) for each in some]),
        _right("Tokens", [number(each.usage.total_tokens) for each in some]),
        _right("Tool calls", [number(each.tool_calls) for each in some]),
    ]
    return _table(columns, layout)


def _tools(found: Insights, layout: TextLayout) -> list[str]:
    shown = found.tools[:MOST_TOOLS]
    columns = [
        Column("Tool", [layout.display_text(each.tool) for each in shown], is_elastic=True),
        _right("Calls", [number(each.calls) for each in shown]),
        _right("Share", [percent(each.share) for each in shown]),
    ]
    bars = [each.calls for each in shown]
    return [*_table(columns, layout, bars=bars), *_more(len(found.tools) - len(shown))]


def _skills(found: Insights, layout: TextLayout, now: float) -> list[str]:
    shown = found.skills[:MOST_SKILLS]
    if not shown:
        return []
    columns = [
        Column("Skill", [layout.display_text(each.skill) for each in shown], is_elastic=True),
        _right("Loads", [number(each.loads) for each in shown]),
        _right("Edits", [number(each.edits) for each in shown]),
        Column("Last used", [ago(each.last_used_at, now) for each in shown]),
    ]
    uses = plural(sum(each.uses for each in found.skills), "time")
    every = f"{plural(len(found.skills), 'skill')} used {uses}"
    return [*_table(columns, layout), *_more(len(found.skills) - len(shown)), every]


def _activity(found: Insights, layout: TextLayout) -> list[str]:
    activity = found.activity
    if not activity.active_days:
        return []
    return [*_days(found, layout), "", *_weekdays(activity.weekdays, layout), "", *_hours(activity.hours, layout)]


def _days(found: Insights, layout: TextLayout) -> list[str]:
    some = split_days(found.period, found.activity, layout.inner_width)
    length = (some[-1].last - some[-1].first).days + 1
    span = "a day" if length == 1 else f"in {length} days"
    messages, costs = [each.messages for each in some], [each.cost_usd for each in some]
    wide = max(1, min(layout.inner_width, LONGEST_LINE) // len(some))
    lines = [f"Messages, at most {number(max(messages))} {span}", _line(messages, wide, layout)]
    if any(costs):
        lines += [f"Cost, at most {money(max(costs))} {span}", _line(costs, wide, layout)]
    first, last = f"{found.period.first}", f"{found.period.last}"
    between = wide * len(some) - len(first) - len(last)
    return [*lines, f"{first}{' ' * between}{last}"] if between > 0 else lines


def _weekdays(counts: Sequence[int], layout: TextLayout) -> list[str]:
    columns = [Column("", WEEKDAYS, is_elastic=True), _right("", [number(each) for each in counts])]
    return _table(columns, layout, bars=counts)[2:]


def _hours(counts: Sequence[int], layout: TextLayout) -> list[str]:
    wide = 2 if layout.inner_width >= 2 * HOURS else 1
    marks = "".join(f"{hour:<{6 * wide}}" for hour in range(0, HOURS, 6))
    peaks = sorted((hour for hour in range(HOURS) if counts[hour]), key=lambda hour: (-counts[hour], hour))
    busiest = ", ".join(f"{hour:02}:00 ({number(counts[hour])})" for hour in peaks[:MOST_PEAKS])
    return [
        "Messages by hour of the day",
        _line(counts, wide, layout),
        marks,
        *wrap_text(f"Busiest: {busiest}", layout.inner_width),
    ]


def _line(values: Sequence[float], wide: int, layout: TextLayout) -> str:
    """Draw small bars, each `wide` columns wide."""
    return "".join(bar * wide for bar in sparkline(values, layout.levels))


def _notable(found: Insights, layout: TextLayout) -> list[str]:
    some = found.notable
    if not some:
        return []
    titles = [layout.display_text(conversation_name(each)) or NO_TITLE for each in some]
    columns = [
        Column("Most", [MEASURES[each.measure] for each in some]),
        _right("", [format_value(each) for each in some])._replace(dropped=2),
        Column("Title", titles, is_elastic=True, dropped=1),
        Column("ID", [layout.display_text(each.id) for each in some]),
    ]
    return format_table(columns, layout.inner_width)


def _table(columns: Sequence[Column], layout: TextLayout, bars: Sequence[float] = ()) -> list[str]:
    """Format a table with bars if they fit; if the table itself does not fit, drop its last columns."""
    if not columns[0].cells:
        return []
    fitting = list(columns)
    while len(fitting) > 2 and _width(fitting, cut=True) > layout.inner_width:
        fitting.pop()
    header, rule, *rows = format_table(fitting, layout.inner_width)
    longest = min(layout.inner_width - len(rule) - GAP, LONGEST_BAR)
    if not bars or longest < SHORTEST_BAR:
        return [header, rule, *rows]
    beside = [BLOCK * bar_length(value, max(bars), longest) for value in bars]
    rows = [pad(row, len(rule) + GAP) + bar for row, bar in zip(rows, beside, strict=True)]
    return [header, rule + rule[:1] * (GAP + max(map(len, beside))), *rows]


def _width(columns: Sequence[Column], *, cut: bool = False) -> int:
    """Return the width of a table, with elastic columns at their minimum if `cut`."""
    widths = [min(each.widest(), LEAST_WIDTH) if cut and each.is_elastic else each.widest() for each in columns]
    return sum(widths) + GAP * (len(widths) - 1)


def _right(header: str, cells: Sequence[str]) -> Column:
    """Return a column with its cells aligned right."""
    width = max((display_width(each) for each in (header, *cells)), default=0)
    return Column(f"{header:>{width}}", [f"{each:>{width}}" for each in cells])


def _more(count: int) -> list[str]:
    return [f"… and {count} more"] if count > 0 else []
