"""Insights equal the same sums computed slowly, over random stores."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from hermes.state.usage.insights import Insights, read_insights
from hermes.state.usage.period import last_days
from hermes.state.usage.totals import UsageTotals
from tests.support.clock import DAY_S, FakeClock
from tests.support.naive_insights import History, Naive, Row, day_of, tokens
from tests.support.random_sessions import RandomUse
from tests.support.zones import BERLIN, KATHMANDU, NEW_YORK, local_zone

MARCH = 1_741_176_000.0
"""Before clocks are set forward, here on the 9th and there on the 30th."""


def bare(model: str | None) -> str:
    return (model or "").rpartition("/")[2] or "unknown"


def summed(bookings: Iterable[Row]) -> UsageTotals:
    """Return the sums of events; their costs are quarters of a dollar, which add up exactly."""
    some = list(bookings)
    return UsageTotals(
        input_tokens=sum(each["input_tokens"] for each in some),
        output_tokens=sum(each["output_tokens"] for each in some),
        cache_read_tokens=sum(each["cache_read_tokens"] for each in some),
        cache_write_tokens=sum(each["cache_write_tokens"] for each in some),
        reasoning_tokens=sum(each["reasoning_tokens"] for each in some),
        api_calls=sum(each["api_call_count"] for each in some),
        estimated_cost_usd=sum(each["estimated_cost_usd"] or 0 for each in some),
        actual_cost_usd=sum(each["actual_cost_usd"] or 0 for each in some),
        cost_usd=sum(each["cost"] or 0 for each in some),
        unpriced_tokens=sum(tokens(each) for each in some if each["cost"] is None),
        included_tokens=sum(tokens(each) for each in some if each["cost"] == 0),
    )


@pytest.fixture(params=range(3))
def used_store(request: pytest.FixtureRequest, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
    """Create a store that was used for about a month."""
    clock.now = MARCH
    RandomUse(store, clock, request.param).run(steps=110, longest_pause_s=1.2 * DAY_S)
    return store


def check(found: Insights, naive: Naive) -> None:
    """Check that every number is the same."""
    every = [message for some in naive.messages.values() for message in some]
    booked = [each for some in naive.bookings.values() for each in some]
    calls = sum(naive.tools.values(), Counter())
    overview = found.overview
    assert overview.conversations == len(naive.conversations)
    assert overview.sessions == len(naive.active)
    assert overview.continuations == sum(row["child_kind"] == "compression" for row in naive.active)
    assert overview.delegates == sum(row["child_kind"] == "delegate" for row in naive.active)
    assert overview.duration_s == pytest.approx(sum(map(naive.duration, naive.active)))
    roles = Counter(message["role"] for message in every)
    assert overview.messages == roles.total()
    assert (overview.user_messages, overview.assistant_messages, overview.tool_messages) == (
        roles["user"],
        roles["assistant"],
        roles["tool"],
    )
    assert overview.tool_calls == calls.total()
    assert overview.usage == summed(booked)
    assert {each.tool: each.calls for each in found.tools} == calls
    check_models(found, naive, booked)
    check_platforms(found, naive, booked)
    check_activity(found, every, booked)
    check_skills(found, every)
    notable = naive.notable()
    assert {each.measure: each.id for each in found.notable} == {name: home for name, (_, home) in notable.items()}
    assert [each.value for each in found.notable] == [pytest.approx(notable[each.measure][0]) for each in found.notable]


def check_models(found: Insights, naive: Naive, booked: list[Row]) -> None:
    names = {bare(each["model"]) for each in (*booked, *naive.conversations)}
    assert {each.model: (each.conversations, each.usage) for each in found.models} == {
        name: (
            sum(bare(row["model"]) == name for row in naive.conversations),
            summed(each for each in booked if bare(each["model"]) == name),
        )
        for name in names
    }


def check_platforms(found: Insights, naive: Naive, booked: list[Row]) -> None:
    for each in found.platforms:
        own = [row["id"] for row in naive.active if row["source"] == each.source]
        assert each.conversations == sum(row["source"] == each.source for row in naive.conversations)
        assert each.sessions == len(own)
        assert each.messages == sum(len(naive.messages[session_id]) for session_id in own)
        assert each.tool_calls == sum(naive.tools[session_id].total() for session_id in own)
        assert each.usage == summed(some for some in booked if some["source"] == each.source)
    sources = {row["source"] for row in (*naive.active, *naive.conversations)} | {each["source"] for each in booked}
    assert {each.source for each in found.platforms} == sources


def check_activity(found: Insights, every: list[Row], booked: list[Row]) -> None:
    activity = found.activity
    messages_by_day = Counter(day_of(message["timestamp"]) for message in every)
    used: Counter[date] = Counter()
    for each in booked:
        used[day_of(each["at"])] += tokens(each)
    assert {day.date: (day.messages, day.tokens) for day in activity.days} == {
        day: (messages_by_day[day], used[day]) for day in messages_by_day.keys() | used.keys()
    }
    assert activity.weekdays == [
        sum(n for day, n in messages_by_day.items() if day.weekday() == place) for place in range(7)
    ]
    hours = Counter(time.localtime(message["timestamp"]).tm_hour for message in every)
    assert activity.hours == [hours[hour] for hour in range(24)]
    assert activity.active_days == len(messages_by_day)


def check_skills(found: Insights, every: list[Row]) -> None:
    called: list[Any] = [call for message in every for call in message["tool_calls"] or ()]
    loads = sum(call["function"]["name"] == "skill_view" for call in called)
    assert [(each.skill, each.loads, each.edits) for each in found.skills] == ([("報告", loads, 0)] if loads else [])


def test_sums_agree_with_single_messages_and_events(used_store: SessionDBProvider, clock: FakeClock) -> None:
    history = History.of(used_store)
    for zone in (BERLIN, NEW_YORK, KATHMANDU):
        with local_zone(zone):
            for days in (1, 8, 20, 60):
                period = last_days(days, clock.now)
                for source, owner in ((None, None), ("telegram", None), (None, "telegram:1")):
                    found = read_insights(used_store, period, source=source, owner=owner)
                    check(found, Naive(history, period.first, period.last, source, owner))
