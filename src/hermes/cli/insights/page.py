"""Insights as a page of HTML that needs nothing but itself: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hermes.cli.insights.charts import Bar, bar_chart
from hermes.cli.insights.figures import money, number, percent
from hermes.cli.insights.markup import Markup, join_markup, tag
from hermes.cli.insights.series import DaySpan, split_days
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

CSS = Path(__file__).with_name("page.css")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever a title says, the page loads nothing and runs nothing."""

MOST_BARS = 120
MOST_ROWS = 50


class NumberColumn(NamedTuple):
    """A column of numbers."""

    header: str
    cells: Sequence[str]


def render_page(found: Insights, generated_at: float) -> str:
    """The whole page."""
    title = report_title(found)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(CSS.read_text("utf-8"))),
    )
    when = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(generated_at))
    body = _sections(found) if not found.is_empty else tag("p", "Nothing happened in this time.")
    main = tag("main", tag("header", tag("h1", title)), body, tag("footer", f"Made by hermes insights, {when}."))
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', main), lang='en')}\n"


def _sections(found: Insights) -> Markup:
    usage = found.overview.usage
    sections = {
        "Overview": _facts(overview_facts(found)),
        "Tokens": _tokens(usage),
        "Cost": _facts(cost_facts(found)),
        "Models": _models(found),
        "Platforms": _platforms(found),
        "Tools": _tools(found),
        "Skills": _skills(found),
        "Activity": _activity(found),
        "Notable conversations": _notable(found),
    }
    return join_markup(*(tag("section", tag("h2", name), content) for name, content in sections.items() if content))


def _facts(facts: Sequence[Fact]) -> Markup:
    cards = [
        tag(
            "div",
            tag("dt", each.name),
            tag("dd", each.value, class_="value"),
            tag("dd", each.note, class_="note") if each.note else Markup(),
        )
        for each in facts
    ]
    return tag("dl", *cards) if cards else Markup()


def _tokens(usage: UsageTotals) -> Markup:
    kinds = token_counts(usage)
    if not usage.total_tokens:
        return Markup()
    shares = [count / usage.total_tokens for count in kinds.values()]
    numbers = [NumberColumn("Tokens", [*map(number, kinds.values())]), NumberColumn("Share", [*map(percent, shares)])]
    caption = " ".join([f"{number(usage.total_tokens)} tokens.", reasoning_note(usage)]).strip()
    return _table(caption, "Kind", list(kinds), numbers, shares)


def _models(found: Insights) -> Markup:
    some = found.models[:MOST_ROWS]
    numbers = [
        NumberColumn("Tokens", [number(each.usage.total_tokens) for each in some]),
        NumberColumn("Cost", [format_cost(each.usage) for each in some]),
        NumberColumn("Calls", [number(each.usage.api_calls) for each in some]),
        NumberColumn("Conversations", [number(each.conversations) for each in some]),
    ]
    every = max(1, found.overview.usage.total_tokens)
    shares = [each.usage.total_tokens / every for each in some]
    return _table(_table_caption(len(found.models), "model"), "Model", [each.model for each in some], numbers, shares)


def _platforms(found: Insights) -> Markup:
    some = found.platforms[:MOST_ROWS]
    numbers = [
        NumberColumn("Conversations", [number(each.conversations) for each in some]),
        NumberColumn("Messages", [number(each.messages) for each in some]),
        NumberColumn("Tool calls", [number(each.tool_calls) for each in some]),
        NumberColumn("Tokens", [number(each.usage.total_tokens) for each in some]),
        NumberColumn("Cost", [format_cost(each.usage) for each in some]),
    ]
    return _table(_table_caption(len(found.platforms), "platform"), "Platform", [each.source for each in some], numbers)


def _tools(found: Insights) -> Markup:
    some = found.tools[:MOST_ROWS]
    numbers = [
        NumberColumn("Calls", [number(each.calls) for each in some]),
        NumberColumn("Share", [percent(each.share) for each in some]),
    ]
    names, shares = [each.tool for each in some], [each.share for each in some]
    return _table(_table_caption(len(found.tools), "tool"), "Tool", names, numbers, shares)


def _skills(found: Insights) -> Markup:
    some = found.skills[:MOST_ROWS]
    numbers = [
        NumberColumn("Loads", [number(each.loads) for each in some]),
        NumberColumn("Edits", [number(each.edits) for each in some]),
        NumberColumn(
            "Last used", [time.strftime("%Y-%m-%d %H:%M", time.localtime(each.last_used_at)) for each in some]
        ),
    ]
    return _table(_table_caption(len(found.skills), "skill"), "Skill", [each.skill for each in some], numbers)


def _notable(found: Insights) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", f"Most {MEASURES[each.measure]}", scope="row"),
            tag("td", format_value(each), class_="number"),
            tag("td", conversation_name(each) or NO_TITLE),
            tag("td", each.source),
            tag("td", tag("code", each.id)),
        )
        for each in found.notable
    ]
    return tag("div", tag("table", tag("tbody", *rows)), class_="wide") if rows else Markup()


def _activity(found: Insights) -> Markup:
    activity, period = found.activity, found.period
    if not activity.active_days:
        return Markup()
    some = split_days(period, activity, MOST_BARS)
    ends = [(0, f"{period.first}"), (len(some) - 1, f"{period.last}")] if len(some) > 1 else [(0, f"{period.last}")]
    length = (some[-1].last - some[-1].first).days + 1
    span = "day" if length == 1 else f"{length} days"
    charts = [_chart(f"Messages per {span}", [_message_bar(each) for each in some], ends)]
    if any(each.cost_usd for each in some):
        charts.append(_chart(f"Cost per {span}", [_cost_bar(each) for each in some], ends))
    weekdays = [
        Bar(name, count, counted(count, "message")) for name, count in zip(WEEKDAYS, activity.weekdays, strict=True)
    ]
    charts.append(_chart("Messages by day of the week", weekdays, list(enumerate(each[:3] for each in WEEKDAYS))))
    hours = [Bar(f"{hour:02}:00", count, counted(count, "message")) for hour, count in enumerate(activity.hours)]
    charts.append(_chart("Messages by hour of the day", hours, [(hour, f"{hour}") for hour in range(0, HOURS, 3)]))
    return join_markup(*charts)


def _message_bar(part: DaySpan) -> Bar:
    return Bar(part.name, part.messages, counted(part.messages, "message"))


def _cost_bar(part: DaySpan) -> Bar:
    return Bar(part.name, part.cost_usd, money(part.cost_usd))


def _chart(name: str, bars: Sequence[Bar], marks: Sequence[tuple[int, str]]) -> Markup:
    """A chart, and the same as a table for those who do not see it."""
    most = max(bars, key=lambda bar: bar.value)
    numbers = [NumberColumn("", [bar.said for bar in bars])]
    return join_markup(
        tag("h3", name),
        bar_chart(bars, f"{name}; the most, {most.said}: {most.name}", marks),
        tag("details", tag("summary", "As a table"), _table(name, "", [bar.name for bar in bars], numbers)),
    )


def _table(
    caption: str, first: str, names: Sequence[str], numbers: Sequence[NumberColumn], shares: Sequence[float] = ()
) -> Markup:
    """A table of names and their numbers, with bars where there are shares."""
    if not names:
        return Markup()
    headers = [
        tag("th", first, scope="col"),
        *(tag("th", each.header, scope="col", class_="number") for each in numbers),
    ]
    rows = []
    for place, name in enumerate(names):
        cells = [tag("th", name, scope="row"), *(tag("td", each.cells[place], class_="number") for each in numbers)]
        if shares:
            bar = tag("span", style=f"width: {100 * shares[place]:.1f}%") if shares[place] > 0 else Markup()
            cells.append(tag("td", bar, class_="share", aria_hidden="true"))
        rows.append(tag("tr", *cells))
    if shares:
        headers.append(tag("td", aria_hidden="true"))
    table = tag("table", tag("caption", caption), tag("thead", tag("tr", *headers)), tag("tbody", *rows))
    return tag("div", table, class_="wide")


def _table_caption(count: int, noun: str) -> str:
    return counted(count, noun) if count <= MOST_ROWS else f"The first {MOST_ROWS} of {counted(count, noun)}"
