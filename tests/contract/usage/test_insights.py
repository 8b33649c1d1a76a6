"""Insights: what is counted, how, and at which time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from hermes.state.usage.insights import Insights, read_insights
from hermes.state.usage.period import last_days
from hermes.state.usage.totals import add_totals
from tests.support.clock import DAY_S, NOW, FakeClock
from tests.support.conversations import compress, say, start
from tests.support.stores import Opener
from tests.support.zones import BERLIN, local_zone

HOUR_S = 3600
WEEK = 7


@pytest.fixture(autouse=True)
def in_berlin() -> Iterator[None]:
    """Set the time zone to Berlin: Sunday, 15 June 2025, 17:06."""
    with local_zone(BERLIN):
        yield


def week(store: SessionDBProvider, **scope: Any) -> Insights:
    """Return the last seven days, from Monday to Sunday."""
    return read_insights(store, last_days(WEEK, NOW), **scope)


def spend(store: SessionDBProvider, session_id: str, tokens: int = 10, **fields: Any) -> None:
    """Add some input tokens."""
    store.update_token_counts(session_id, input_tokens=tokens, **fields)


def call(store: SessionDBProvider, session_id: str, tool: str, arguments: str = "{}") -> None:
    """Store a tool call and its result."""
    calls = [{"id": "1", "function": {"name": tool, "arguments": arguments}}]
    store.append_message(session_id, "assistant", None, tool_calls=calls)
    store.append_message(session_id, "tool", "done", tool_name=tool, tool_call_id="1")


class TestConversations:
    def test_conversations_count_once_however_often_they_were_compressed(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        compress(store, clock, "root", "next")
        compress(store, clock, "next", "tip")
        overview = week(store).overview
        assert (overview.conversations, overview.continuations, overview.sessions) == (1, 2, 3)

    def test_conversations_count_if_only_their_newest_part_was_active(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        clock.advance(-30 * DAY_S)
        start(store, "root")
        clock.advance(29 * DAY_S)
        compress(store, clock, "root", "tip")
        overview = week(store).overview
        assert (overview.conversations, overview.continuations, overview.sessions) == (1, 1, 1)

    def test_delegates_are_no_conversations(self, store: SessionDBProvider) -> None:
        start(store, "root")
        start(store, "helper", source="subagent", parent_session_id="root", child_kind="delegate")
        overview = week(store).overview
        assert (overview.conversations, overview.delegates) == (1, 1)

    def test_branches_are_conversations(self, store: SessionDBProvider) -> None:
        start(store, "root")
        store.branch_session("root", "branch")
        assert week(store).overview.conversations == 2

    def test_archived_conversations_count(self, store: SessionDBProvider) -> None:
        store.set_session_archived(start(store, "root"))
        assert week(store).overview.conversations == 1

    def test_deleted_conversations_do_not_count(self, store: SessionDBProvider) -> None:
        say(store, start(store, "root"), "hello")
        spend(store, "root")
        store.delete_session("root")
        assert week(store).is_empty

    def test_conversations_before_the_period_are_left_out(self, store: SessionDBProvider, clock: FakeClock) -> None:
        clock.advance(-WEEK * DAY_S)
        say(store, start(store, "old"), "hello")
        assert week(store).is_empty

    def test_conversations_count_from_the_first_midnight(self, store: SessionDBProvider, clock: FakeClock) -> None:
        midnight = last_days(WEEK, NOW).since
        clock.now = midnight - 1
        say(store, start(store, "before"), "hello")
        clock.now = midnight
        say(store, start(store, "after"), "hello")
        assert week(store).overview.conversations == 1

    def test_duration_is_from_start_to_last_message(self, store: SessionDBProvider, clock: FakeClock) -> None:
        clock.advance(-2 * HOUR_S)
        start(store, "a")
        clock.advance(HOUR_S)
        say(store, "a", "hello")
        store.end_session("a", "user_exit")
        assert week(store).overview.duration_s == HOUR_S

    def test_duration_counts_only_within_the_period(self, store: SessionDBProvider, clock: FakeClock) -> None:
        midnight = last_days(WEEK, NOW).since
        clock.now = midnight - 10 * HOUR_S
        start(store, "a")
        clock.now = midnight + HOUR_S
        say(store, "a", "hello")
        assert week(store).overview.duration_s == HOUR_S


class TestMessages:
    def test_messages_count_at_their_own_time(self, store: SessionDBProvider, clock: FakeClock) -> None:
        clock.advance(-30 * DAY_S)
        say(store, start(store, "a"), "long ago", "long ago too")
        clock.advance(30 * DAY_S)
        say(store, "a", "today")
        assert week(store).overview.messages == 1

    def test_messages_copied_to_a_continuation_are_not_counted_again(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        ids = say(store, start(store, "a"), "one", "two", "three")
        clock.advance(60)
        store.compress_session("a", "b", "in short", tail_from=ids[1])
        assert store.message_count("b") == 3
        assert week(store).overview.messages == 4  # the summary is new

    def test_messages_copied_to_a_branch_are_not_counted_again(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        say(store, start(store, "a"), "one", "two", "three")
        clock.advance(60)
        store.branch_session("a", "b")
        clock.advance(60)
        say(store, "b", "four")
        assert week(store).overview.messages == 4

    def test_undone_messages_do_not_count(self, store: SessionDBProvider) -> None:
        ids = say(store, start(store, "a"), "one", "two")
        store.rewind_to_message("a", ids[1])
        assert week(store).overview.messages == 1

    def test_messages_are_counted_by_role(self, store: SessionDBProvider) -> None:
        say(store, start(store, "a"), "question")
        call(store, "a", "terminal")
        say(store, "a", "answer", role="assistant")
        overview = week(store).overview
        assert (overview.user_messages, overview.assistant_messages, overview.tool_messages) == (1, 2, 1)

    def test_messages_with_extreme_times_do_no_harm(self, store: SessionDBProvider) -> None:
        start(store, "a")
        for moment in (NOW, NOW * 1e9, -1e9, 0.0, 1e300):
            store.append_message("a", "user", "when?", timestamp=moment)
        assert week(store).overview.messages == 1


class TestUsage:
    def test_usage_counts_at_the_time_of_its_event(self, store: SessionDBProvider, clock: FakeClock) -> None:
        clock.advance(-30 * DAY_S)
        spend(store, start(store, "a"), 1000)
        clock.advance(30 * DAY_S)
        spend(store, "a", 5)
        assert week(store).overview.usage.total_tokens == 5

    def test_imported_usage_counts_at_the_start_of_its_session(self, store: SessionDBProvider) -> None:
        store.import_session({"id": "a", "source": "cli", "started_at": NOW - 30 * DAY_S, "input_tokens": 7})
        store.import_session({"id": "b", "source": "cli", "started_at": NOW - DAY_S, "input_tokens": 5})
        assert week(store).overview.usage.total_tokens == 5

    def test_usage_is_split_by_kinds_of_tokens(self, store: SessionDBProvider) -> None:
        kinds = {"output_tokens": 2, "cache_read_tokens": 3, "cache_write_tokens": 4, "reasoning_tokens": 1}
        spend(store, start(store, "a"), 1, **kinds)
        usage = week(store).overview.usage
        assert {name: getattr(usage, name) for name in kinds} == kinds
        assert (usage.input_tokens, usage.total_tokens) == (1, 10)

    def test_cost_of_usage_is_the_known_cost(self, store: SessionDBProvider) -> None:
        spend(store, start(store, "a"), 10, estimated_cost_usd=1.5, cost_status="estimated")
        spend(store, "a", 20, actual_cost_usd=0.25, cost_status="actual")
        spend(store, "a", 30, cost_status="unknown")
        spend(store, "a", 40, estimated_cost_usd=0.0, cost_status="included")
        usage = week(store).overview.usage
        assert (usage.estimated_cost_usd, usage.actual_cost_usd, usage.cost_usd) == (1.5, 0.25, 1.75)
        assert (usage.unpriced_tokens, usage.included_tokens, usage.cost_status) == (30, 40, "partial")

    def test_usage_that_was_estimated_and_then_billed_costs_the_bill(self, store: SessionDBProvider) -> None:
        spend(store, start(store, "a"), 10, estimated_cost_usd=1.5, actual_cost_usd=0.25)
        assert week(store).overview.usage.cost_usd == 0.25

    @pytest.mark.parametrize(
        ("costs", "status"),
        [
            ([None], "unknown"),
            ([0.0], "included"),
            ([0.0, None], "partial"),
            ([0.5, 0.0], "known"),
            ([], "none"),
        ],
    )
    def test_usage_has_a_cost_status(self, store: SessionDBProvider, costs: list[float | None], status: str) -> None:
        start(store, "a")
        for cost in costs:
            spend(store, "a", estimated_cost_usd=cost)
        assert week(store).overview.usage.cost_status == status

    def test_usage_of_one_model_is_summed_over_all_providers(self, store: SessionDBProvider) -> None:
        spend(store, start(store, "a"), 10, model="openai/gpt-5")
        spend(store, start(store, "b"), 20, model="gpt-5")
        (model,) = week(store).models
        assert (model.model, model.conversations, model.usage.total_tokens) == ("gpt-5", 2, 30)

    def test_usage_goes_to_the_model_that_was_used(self, store: SessionDBProvider) -> None:
        spend(store, start(store, "a", model="large"), 10, model="large")
        spend(store, "a", 30, model="small")
        found = {each.model: (each.conversations, each.usage.total_tokens) for each in week(store).models}
        assert found == {"small": (0, 30), "large": (1, 10)}

    def test_usage_without_a_model_has_an_unknown_model(self, store: SessionDBProvider) -> None:
        spend(store, start(store, "a"))
        assert [each.model for each in week(store).models] == ["unknown"]

    def test_usage_of_models_with_any_name_is_reported(self, store: SessionDBProvider) -> None:
        spend(store, start(store, "a"), model="模型 \ud800 \0")
        assert [each.model for each in week(store).models] == ["模型 \ud800 \0"]

    def test_usage_sums_do_not_overflow(self, store: SessionDBProvider) -> None:
        for session_id in ("a", "b"):
            spend(store, start(store, session_id), 2**63 - 1)
        assert week(store).overview.usage.total_tokens == pytest.approx(2**64)


class TestTools:
    def test_tools_are_counted_by_their_calls(self, store: SessionDBProvider) -> None:
        start(store, "a")
        for tool in ("terminal", "terminal", "terminal", "read_file"):
            call(store, "a", tool)
        assert [(each.tool, each.calls, each.share) for each in week(store).tools] == [
            ("terminal", 3, 0.75),
            ("read_file", 1, 0.25),
        ]

    def test_tools_of_an_older_session_count_if_used_in_the_period(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        clock.advance(-30 * DAY_S)
        call(store, start(store, "a"), "terminal")
        clock.advance(30 * DAY_S)
        call(store, "a", "read_file")
        assert [each.tool for each in week(store).tools] == ["read_file"]

    def test_tools_of_copied_messages_are_not_counted_again(self, store: SessionDBProvider, clock: FakeClock) -> None:
        call(store, start(store, "a"), "terminal")
        clock.advance(60)
        store.branch_session("a", "b")
        assert week(store).overview.tool_calls == 1

    def test_skill_tools_report_their_skills(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "a")
        for tool, arguments in (
            ("skill_view", '{"name": "reports"}'),
            ("skill_view", '{"name": "reports"}'),
            ("skill_manage", '{"name": "日報", "action": "edit"}'),
            ("skill_view", "not JSON"),
            ("skill_view", '["a", "list"]'),
            ("skill_view", '{"name": 5}'),
        ):
            clock.advance(1)
            call(store, "a", tool, arguments)
        assert [(each.skill, each.loads, each.edits, each.last_used_at - NOW) for each in week(store).skills] == [
            ("reports", 2, 0, 2),
            ("日報", 0, 1, 3),
        ]


class TestActivity:
    def test_activity_is_grouped_by_local_days_and_hours(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "a")
        for moment in (NOW, NOW - DAY_S, NOW - DAY_S - HOUR_S):
            store.append_message("a", "user", "hello", timestamp=moment)
        activity = week(store).activity
        assert [(f"{day.date}", day.messages) for day in activity.days] == [("2025-06-14", 2), ("2025-06-15", 1)]
        assert activity.weekdays == [0, 0, 0, 0, 0, 2, 1]
        assert (activity.hours[16], activity.hours[17]) == (1, 2)
        assert (activity.busiest_weekday, activity.busiest_hour) == (5, 17)

    def test_activity_is_empty_without_messages(self, store: SessionDBProvider) -> None:
        spend(store, start(store, "a"))
        activity = week(store).activity
        assert (activity.active_days, activity.busiest_weekday, activity.busiest_hour) == (0, None, None)
        assert [day.tokens for day in activity.days] == [10]

    @pytest.mark.parametrize(
        ("days_ago", "streak"),
        [([0], 1), ([0, 1, 2], 3), ([0, 2, 3, 4, 6], 3), ([1, 3, 5], 1), ([], 0)],
    )
    def test_activity_knows_the_longest_streak(
        self, store: SessionDBProvider, days_ago: list[int], streak: int
    ) -> None:
        start(store, "a")
        for days in days_ago:
            store.append_message("a", "user", "hello", timestamp=NOW - days * DAY_S)
        assert week(store).activity.longest_streak == streak


class TestNotable:
    def test_notable_conversations_include_continuations_and_delegates(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "long")
        compress(store, clock, "long", "tip")
        start(store, "helper", source="subagent", parent_session_id="tip", child_kind="delegate")
        for session_id in ("long", "tip", "helper"):
            spend(store, session_id, 10)
        spend(store, start(store, "short"), 25)
        found = {each.measure: (each.value, each.id) for each in week(store).notable}
        assert found["tokens"] == (30, "long")

    def test_measures_without_a_value_are_left_out(self, store: SessionDBProvider) -> None:
        say(store, start(store, "a"), "hello")
        assert [each.measure for each in week(store).notable] == ["messages"]

    def test_notable_conversations_have_a_title_or_a_preview(self, store: SessionDBProvider) -> None:
        say(store, start(store, "a"), "hello")
        store.set_session_title("a", "Greetings")
        (most,) = week(store).notable
        assert (most.title, most.preview, most.source, most.started_at) == ("Greetings", "hello", "cli", NOW)


class TestScope:
    @pytest.fixture
    def shared(self, store: SessionDBProvider) -> SessionDBProvider:
        for session_id, source, user in (("a", "cli", None), ("b", "telegram", "1"), ("c", "telegram", "2")):
            say(store, start(store, session_id, source=source, user_id=user), "hello")
            call(store, session_id, f"tool-{session_id}")
            spend(store, session_id, model=f"model-{session_id}")
        return store

    @pytest.mark.parametrize(
        ("scope", "sessions"),
        [
            ({}, "abc"),
            ({"source": "telegram"}, "bc"),
            ({"owner": "telegram:2"}, "c"),
            ({"source": "cli", "owner": "telegram:2"}, ""),
            ({"source": "nowhere"}, ""),
        ],
    )
    def test_insights_filters_apply_to_everything(
        self, shared: SessionDBProvider, scope: dict[str, str], sessions: str
    ) -> None:
        found = week(shared, **scope)
        assert sorted(each.tool for each in found.tools) == [f"tool-{each}" for each in sessions]
        assert sorted(each.model for each in found.models) == [f"model-{each}" for each in sessions]
        overview = found.overview
        assert (overview.conversations, overview.messages) == (len(sessions), 3 * len(sessions))
        assert overview.usage.total_tokens == 10 * len(sessions)
        assert sum(found.activity.hours) == 3 * len(sessions)
        assert {each.id for each in found.notable} <= set(sessions)
        assert found.is_empty == (not sessions)

    def test_a_read_only_store_returns_the_same_insights(self, shared: SessionDBProvider, open_store: Opener) -> None:
        assert week(open_store(read_only=True)) == week(shared)

    def test_a_period_of_a_hundred_years_has_everything(self, shared: SessionDBProvider) -> None:
        found = read_insights(shared, last_days(36_500, NOW))
        assert (found.overview, found.tools, found.notable) == (
            week(shared).overview,
            week(shared).tools,
            week(shared).notable,
        )

    def test_all_sums_of_insights_agree(self, shared: SessionDBProvider, clock: FakeClock) -> None:
        compress(store=shared, clock=clock, session_id="a", child_id="d")
        spend(shared, "d", 5, model="other", estimated_cost_usd=0.5)
        found = week(shared)
        overview = found.overview
        for some in (found.models, found.platforms):
            assert add_totals(each.usage for each in some) == overview.usage
            assert sum(each.conversations for each in some) == overview.conversations
        assert sum(each.messages for each in found.platforms) == overview.messages
        assert sum(each.tool_calls for each in found.platforms) == overview.tool_calls
        assert sum(each.calls for each in found.tools) == overview.tool_calls
        assert sum(each.messages for each in found.activity.days) == overview.messages
        assert sum(each.tokens for each in found.activity.days) == overview.usage.total_tokens
        assert sum(found.activity.weekdays) == sum(found.activity.hours) == overview.messages

    def test_an_empty_store_has_empty_insights(self, store: SessionDBProvider) -> None:
        found = week(store)
        assert (found.is_empty, found.models, found.platforms, found.tools, found.skills) == (True, [], [], [], [])
