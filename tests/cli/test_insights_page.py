"""Insights as an HTML page: well-formed, safe and self-contained."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from hermes.cli.insights.charts import scale_end
from hermes.cli.insights.markup import Markup, join_markup, tag
from hermes.cli.insights.page import render_page
from hermes.state.usage.aggregates import (
    NotableConversation,
    SessionCell,
    SessionCounts,
    Sums,
    ToolCell,
    UsageCell,
)
from hermes.state.usage.message_counts import MessageCell
from hermes.state.usage.skill_calls import SkillCall
from hermes.state.usage.totals import UsageTotals
from tests.support.sums import NOON, SUMS, TODAY, sample
from tests.support.zones import local_zone

VOID = {"meta"}
HOSTILE = "</td><script>alert('\"1\"')</script><img src=x onerror=alert(1)>&amp;\x1b[31m\u202e\udc80"


class Reader(HTMLParser):
    """Parses a page and records what is not well-formed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        self.wrong += [f"<{name}> is never closed" for name in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.wrong.append(f"<{tag}> has an attribute twice")
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        self.text.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"a comment: {data}")

    def texts(self, name: str) -> list[str]:
        """Return the texts of all elements of a name."""
        return [text for element, text in self.text if element == name]

    def attributes(self, name: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a name."""
        return [attributes for element, attributes in self.tags if element == name]


def read(sums: Sums = SUMS, **options: int | str | None) -> Reader:
    with local_zone("UTC0"):
        return Reader(render_page(sample(sums, **options), NOON))  # type: ignore[arg-type]


def hostile() -> Sums:
    """Sums in which every name is hostile."""
    return Sums(
        sessions=[SessionCell(HOSTILE, HOSTILE, SessionCounts(1, 1, 0, 0, 60.0))],
        messages=[MessageCell(TODAY * 24, HOSTILE, 1, 1, 0, 0)],
        usage=[UsageCell(TODAY, HOSTILE, HOSTILE, UsageTotals(input_tokens=10, unpriced_tokens=10))],
        tools=[ToolCell(HOSTILE, HOSTILE, 1)],
        skills=[SkillCall(HOSTILE, False, NOON)],
        notable=[NotableConversation("messages", 1.0, HOSTILE, HOSTILE, HOSTILE, HOSTILE, NOON)],
    )


@pytest.mark.parametrize("days", [1, 30, 365, 36_500])
def test_every_element_is_closed(days: int) -> None:
    recent = Sums(SUMS.sessions, SUMS.messages[:5], SUMS.usage[:1], SUMS.tools, SUMS.skills, SUMS.notable)
    assert read(recent, days=days).wrong == []


def test_hostile_names_stay_text() -> None:
    page = read(hostile(), source=HOSTILE)
    assert page.wrong == []
    assert {name for name, _ in page.tags}.isdisjoint({"script", "img"})
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "</td><script>alert('\"1\"')</script><img src=x onerror=alert(1)>&amp;\\x1b[31m\\u202e\\udc80" in page.texts(
        "td"
    )


def test_hostile_names_can_be_written_to_a_file() -> None:
    assert render_page(sample(hostile()), NOON).encode()


def test_page_loads_nothing_external() -> None:
    page = read()
    assert {name for name, _ in page.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "base", "form"})
    assert {"src", "href", "action"}.isdisjoint(name for _, attributes in page.tags for name in attributes)
    assert not re.search(r"url\(|@import|https?:", "".join(page.texts("style")))
    policies = [each.get("content") for each in page.attributes("meta") if each.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_page_supports_a_dark_theme() -> None:
    assert "prefers-color-scheme: dark" in "".join(read().texts("style"))


def test_charts_have_text_alternatives() -> None:
    page = read()
    charts = page.attributes("svg")
    assert len(charts) == 4
    assert all(each["role"] == "img" for each in charts)
    assert charts[0]["aria-label"] == "Messages per day; maximum: 58 messages (2025-12-17)"
    assert page.texts("summary") == ["As a table"] * 4
    assert {each.get("scope") for each in page.attributes("th")} == {"row", "col"}
    assert page.attributes("html") == [{"lang": "en"}]


def test_page_has_every_section_with_its_numbers() -> None:
    page = read()
    assert page.texts("h2") == [
        "Overview",
        "Tokens",
        "Cost",
        "Models",
        "Platforms",
        "Tools",
        "Skills",
        "Activity",
        "Notable conversations",
    ]
    shown = set(page.texts("dd") + page.texts("td"))
    assert {"394", "1,096,100", "$12.75", "$12.50+", "unknown", "included", "58.6%", "2h 30m"} <= shown


def test_long_periods_are_joined_to_a_limited_number_of_bars() -> None:
    recent = Sums(SUMS.sessions, SUMS.messages[:5], SUMS.usage[:1])
    assert "Messages per 305 days" in read(recent, days=36_500).texts("h3")


def test_page_without_activity_reports_it() -> None:
    page = read(Sums())
    assert page.wrong == []
    assert page.texts("p") == ["No activity in this period."]
    assert page.texts("h2") == []


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("b", "<i>", Markup("<i>"), title='"') == '<b title="&quot;">&lt;i&gt;<i></b>'
    assert join_markup("a&b", tag("meta", charset="utf-8")) == 'a&amp;b<meta charset="utf-8">'


@pytest.mark.parametrize(
    ("most", "end"),
    [(0, 2), (1, 2), (3, 4), (5, 6), (7, 8), (58, 60), (99, 100), (100, 100), (101, 200), (12.5, 20), (0.013, 0.02)],
)
def test_scale_ends_at_a_round_number(most: float, end: float) -> None:
    assert scale_end(most) == pytest.approx(end)


def test_every_chart_has_a_scale_that_begins_at_zero() -> None:
    page = read()
    scales = [attributes for name, attributes in page.tags if name == "div" and attributes.get("class") == "scale"]
    assert len(scales) == len(page.attributes("svg")) == 4
    labels = page.texts("span")
    assert labels[:3] == ["60", "30", "0"]
    assert labels[5:8] == ["$20.00", "$10.00", "$0.00"]
