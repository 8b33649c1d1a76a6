"""Insights as a page of HTML that needs nothing but itself: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hermes.cli.report.charts import Bar, bar_chart
from hermes.cli.report.figures import money, number, percent
from hermes.cli.report.markup import Markup, joined, tag
from hermes.cli.report.series import Stretch, stretches
from hermes.cli.report.words import (
    MEASURES,
    NO_TITLE,
    Fact,
    cost_of,
    costs_of,
    name_of,
    overview_of,
    reasoning_of,
    title_of,
    tokens_of,
    value_of,
)
from hermes.phrases import counted
from hermes.state.activity import HOURS, WEEKDAYS
from hermes.state.insights import Insights
from hermes.state.tally import Tally

CSS = Path(__file__).with_name("page.css")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever a title says, the page loads nothing and runs nothing."""

MOST_BARS = 120
MOST_ROWS = 50


class Numbers(NamedTuple):
    """A column of numbers."""

    header: str
    cells: Sequence[str]


def page_of(found: Insights, generated_at: float) -> str:
    """The whole page."""
    title = title_of(found)
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
        "Overview": _facts(overview_of(found)),
        "Tokens": _tokens(usage),
        "Cost": _facts(costs_of(found)),
        "Models": _models(found),
        "Platforms": _platforms(found),
        "Tools": _tools(found),
        "Skills": _skills(found),
        "Activity": _activity(found),
        "Notable conversations": _notable(found),
    }
    return joined(*(tag("section", tag("h2", name), content) for name, content in sections.items() if content))


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


def _tokens(usage: Tally) -> Markup:
    kinds = tokens_of(usage)
    if not usage.total_tokens:
        return Markup()
    shares = [count / usage.total_tokens for count in kinds.values()]
    numbers = [Numbers("Tokens", [*map(number, kinds.values())]), Numbers("Share", [*map(percent, shares)])]
    caption = " ".join([f"{number(usage.total_tokens)} tokens.", reasoning_of(usage)]).strip()
    return _table(caption, "Kind", list(kinds), numbers, shares)


def _models(found: Insights) -> Markup:
    some = found.models[:MOST_ROWS]
    numbers = [
        Numbers("Tokens", [number(each.usage.total_tokens) for each in some]),
        Numbers("Cost", [cost_of(each.usage) for each in some]),
        Numbers("Calls", [number(each.usage.api_calls) for each in some]),
        Numbers("Conversations", [number(each.conversations) for each in some]),
    ]
    every = max(1, found.overview.usage.total_tokens)
    shares = [each.usage.total_tokens / every for each in some]
    return _table(_of(len(found.models), "model"), "Model", [each.model for each in some], numbers, shares)


def _platforms(found: Insights) -> Markup:
    some = found.platforms[:MOST_ROWS]
    numbers = [
        Numbers("Conversations", [number(each.conversations) for each in some]),
        Numbers("Messages", [number(each.messages) for each in some]),
        Numbers("Tool calls", [number(each.tool_calls) for each in some]),
        Numbers("Tokens", [number(each.usage.total_tokens) for each in some]),
        Numbers("Cost", [cost_of(each.usage) for each in some]),
    ]
    return _table(_of(len(found.platforms), "platform"), "Platform", [each.source for each in some], numbers)


def _tools(found: Insights) -> Markup:
    some = found.tools[:MOST_ROWS]
    numbers = [
        Numbers("Calls", [number(each.calls) for each in some]),
        Numbers("Share", [percent(each.share) for each in some]),
    ]
    names, shares = [each.tool for each in some], [each.share for each in some]
    return _table(_of(len(found.tools), "tool"), "Tool", names, numbers, shares)


def _skills(found: Insights) -> Markup:
    some = found.skills[:MOST_ROWS]
    numbers = [
        Numbers("Loads", [number(each.loads) for each in some]),
        Numbers("Edits", [number(each.edits) for each in some]),
        Numbers("Last used", [time.strftime("%Y-%m-%d %H:%M", time.localtime(each.last_used_at)) for each in some]),
    ]
    return _table(_of(len(found.skills), "skill"), "Skill", [each.skill for each in some], numbers)


def _notable(found: Insights) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", f"Most {MEASURES[each.measure]}", scope="row"),
            tag("td", value_of(each), class_="number"),
            tag("td", name_of(each) or NO_TITLE),
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
    some = stretches(period, activity, MOST_BARS)
    ends = [(0, f"{period.first}"), (len(some) - 1, f"{period.last}")] if len(some) > 1 else [(0, f"{period.last}")]
    length = (some[-1].last - some[-1].first).days + 1
    span = "day" if length == 1 else f"{length} days"
    charts = [_chart(f"Messages per {span}", [_said(each) for each in some], ends)]
    if any(each.cost_usd for each in some):
        charts.append(_chart(f"Cost per {span}", [_spent(each) for each in some], ends))
    weekdays = [
        Bar(name, count, counted(count, "message")) for name, count in zip(WEEKDAYS, activity.weekdays, strict=True)
    ]
    charts.append(_chart("Messages by day of the week", weekdays, list(enumerate(each[:3] for each in WEEKDAYS))))
    hours = [Bar(f"{hour:02}:00", count, counted(count, "message")) for hour, count in enumerate(activity.hours)]
    charts.append(_chart("Messages by hour of the day", hours, [(hour, f"{hour}") for hour in range(0, HOURS, 3)]))
    return joined(*charts)


def _said(part: Stretch) -> Bar:
    return Bar(part.name, part.messages, counted(part.messages, "message"))


def _spent(part: Stretch) -> Bar:
    return Bar(part.name, part.cost_usd, money(part.cost_usd))


def _chart(name: str, bars: Sequence[Bar], marks: Sequence[tuple[int, str]]) -> Markup:
    """A chart, and the same as a table for those who do not see it."""
    most = max(bars, key=lambda bar: bar.value)
    numbers = [Numbers("", [bar.said for bar in bars])]
    return joined(
        tag("h3", name),
        bar_chart(bars, f"{name}; the most, {most.said}: {most.name}", marks),
        tag("details", tag("summary", "As a table"), _table(name, "", [bar.name for bar in bars], numbers)),
    )


def _table(
    caption: str, first: str, names: Sequence[str], numbers: Sequence[Numbers], shares: Sequence[float] = ()
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


def _of(count: int, noun: str) -> str:
    return counted(count, noun) if count <= MOST_ROWS else f"The first {MOST_ROWS} of {counted(count, noun)}"
