"""Token and cost counters are the sums of their events."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import at_once, column, session_of, start

COUNTERS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_call_count",
)
COSTS = ("estimated_cost_usd", "actual_cost_usd")


def update(store: SessionDBProvider, **fields: Any) -> dict[str, Any]:
    """Add usage to session `s` and return its row."""
    store.update_token_counts("s", **fields)
    return session_of(store, "s")


class TestDelta:
    @pytest.mark.parametrize("name", [*COUNTERS, *COSTS])
    def test_delta_is_added_to_the_counter(self, store: SessionDBProvider, name: str) -> None:
        update(store, **{name: 5})
        assert update(store, **{name: 7})[name] == 12

    @pytest.mark.parametrize("name", [*COUNTERS, *COSTS])
    def test_delta_leaves_other_counters_alone(self, store: SessionDBProvider, name: str) -> None:
        before = update(store, **{name: 5})
        store.update_token_counts("s", model="m")
        assert session_of(store, "s")[name] == before[name]

    def test_threads_lose_no_token_counts(self, store: SessionDBProvider) -> None:
        def count(_: int) -> None:
            for _ in range(5):
                store.update_token_counts("s", input_tokens=1)

        at_once(8, count)
        assert session_of(store, "s")["input_tokens"] == 40

    def test_delta_that_overflows_is_refused(self, store: SessionDBProvider) -> None:
        update(store, input_tokens=2**63 - 1)
        with pytest.raises(InvalidValue, match="input_tokens"):
            update(store, input_tokens=1)
        assert session_of(store, "s")["input_tokens"] == 2**63 - 1


class TestAbsolute:
    @pytest.mark.parametrize("name", [*COUNTERS, *COSTS])
    def test_absolute_count_overwrites_the_counter(self, store: SessionDBProvider, name: str) -> None:
        update(store, **{name: 5})
        assert update(store, **{name: 3}, absolute=True)[name] == 3

    @pytest.mark.parametrize("name", [*COUNTERS, *COSTS])
    def test_absolute_count_leaves_other_counters_alone(self, store: SessionDBProvider, name: str) -> None:
        update(store, **{name: 5})
        other = "output_tokens" if name == "input_tokens" else "input_tokens"
        assert update(store, **{other: 9}, absolute=True)[name] == 5

    def test_absolute_zero_is_stored(self, store: SessionDBProvider) -> None:
        update(store, input_tokens=5)
        assert update(store, input_tokens=0, absolute=True)["input_tokens"] == 0


class TestNotes:
    @pytest.mark.parametrize("name", ["cost_status", "cost_source", "pricing_version"])
    def test_latest_cost_note_wins(self, store: SessionDBProvider, name: str) -> None:
        update(store, **{name: "old"})
        assert update(store, **{name: "new"})[name] == "new"

    @pytest.mark.parametrize("name", ["billing_provider", "billing_base_url", "billing_mode", "model"])
    def test_first_billing_value_wins(self, store: SessionDBProvider, name: str) -> None:
        update(store, **{name: "first"})
        assert update(store, **{name: "second"})[name] == "first"

    @pytest.mark.parametrize("name", ["cost_status", "billing_provider", "model"])
    def test_missing_note_changes_nothing(self, store: SessionDBProvider, name: str) -> None:
        update(store, **{name: "kept"})
        assert update(store, input_tokens=1)[name] == "kept"


class TestUnknownSession:
    def test_token_counts_create_an_unknown_session(self, store: SessionDBProvider) -> None:
        row = update(store, input_tokens=1, model="m")
        assert (row["source"], row["model"], row["started_at"]) == ("unknown", "m", NOW)

    def test_token_counts_do_not_recreate_an_existing_session(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert update(store, input_tokens=1)["source"] == "cli"


class TestEvents:
    def test_events_record_amounts_and_time(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s", model="m")
        clock.advance(3)
        update(store, input_tokens=5, estimated_cost_usd=0.5)
        (event,) = store.list_usage_events("s")
        shown = {
            name: event[name] for name in ("session_id", "at", "kind", "model", "input_tokens", "estimated_cost_usd")
        }
        assert shown == {
            "session_id": "s",
            "at": NOW + 3,
            "kind": "delta",
            "model": "m",
            "input_tokens": 5,
            "estimated_cost_usd": 0.5,
        }

    def test_events_of_an_absolute_update_are_the_difference(self, store: SessionDBProvider) -> None:
        update(store, input_tokens=5)
        update(store, input_tokens=12, absolute=True)
        assert [(each["kind"], each["input_tokens"]) for each in store.list_usage_events("s")] == [
            ("delta", 5),
            ("absolute", 7),
        ]

    def test_events_add_up_to_the_counters(self, store: SessionDBProvider) -> None:
        update(store, input_tokens=5, output_tokens=2, api_call_count=1, estimated_cost_usd=0.25)
        update(store, input_tokens=50, reasoning_tokens=3, estimated_cost_usd=1.0, absolute=True)
        update(store, cache_read_tokens=8, cache_write_tokens=9, actual_cost_usd=0.5, estimated_cost_usd=0.5)
        row = update(store, input_tokens=40, actual_cost_usd=0.25, absolute=True)
        events: list[Any] = [*store.list_usage_events("s")]
        sums = {name: sum(event[name] or 0 for event in events) for name in (*COUNTERS, *COSTS)}
        assert sums == {name: row[name] for name in (*COUNTERS, *COSTS)}

    def test_events_name_the_model_that_was_used(self, store: SessionDBProvider) -> None:
        start(store, "s", model="first")
        update(store, input_tokens=1, model="second")
        assert column(store.list_usage_events("s"), "model") == ["second"]

    def test_events_name_the_billing_provider(self, store: SessionDBProvider) -> None:
        update(store, input_tokens=1, billing_provider="openrouter")
        assert column(store.list_usage_events("s"), "billing_provider") == ["openrouter"]

    def test_update_without_a_change_stores_no_event(self, store: SessionDBProvider) -> None:
        update(store, input_tokens=5)
        update(store, input_tokens=5, absolute=True)
        update(store, cost_status="final")
        assert len(store.list_usage_events("s")) == 1

    def test_unknown_session_has_no_events(self, store: SessionDBProvider) -> None:
        assert store.list_usage_events("missing") == []

    def test_events_are_deleted_with_the_session(self, store: SessionDBProvider) -> None:
        update(store, input_tokens=5)
        store.delete_session("s")
        assert store.list_usage_events("s") == []


class TestReports:
    @pytest.fixture
    def spent(self, store: SessionDBProvider) -> SessionDBProvider:
        for session_id, model, tokens, cost in (
            ("a", "small", 100, 0.1),
            ("b", "large", 50, 5.0),
            ("c", "small", 10, 0.2),
            ("d", None, 7, None),
        ):
            store.create_session(session_id, "telegram", model=model, user_id="1" if session_id != "b" else "2")
            store.update_token_counts(session_id, input_tokens=tokens, output_tokens=1, estimated_cost_usd=cost)
        return store

    def test_usage_by_model_has_the_most_expensive_first(self, spent: SessionDBProvider) -> None:
        assert column(spent.usage_by_model(), "model") == ["large", "small"]

    def test_usage_by_model_adds_up(self, spent: SessionDBProvider) -> None:
        small = spent.usage_by_model()[1]
        assert small["total_cost"] == pytest.approx(0.3)
        assert {name: small[name] for name in ("session_count", "total_input", "total_output")} == {
            "session_count": 2,
            "total_input": 110,
            "total_output": 2,
        }

    def test_top_sessions_have_the_most_tokens_first(self, spent: SessionDBProvider) -> None:
        assert [(each["id"], each["total_tokens"]) for each in spent.top_sessions()] == [
            ("a", 101),
            ("b", 51),
            ("c", 11),
            ("d", 8),
        ]

    def test_top_sessions_have_the_documented_columns(self, spent: SessionDBProvider) -> None:
        assert set(spent.top_sessions()[0]) == {"id", "title", "model", "total_tokens", "estimated_cost_usd"}

    def test_top_sessions_are_limited(self, spent: SessionDBProvider) -> None:
        assert column(spent.top_sessions(limit=2), "id") == ["a", "b"]

    def test_top_sessions_are_ten_by_default(self, store: SessionDBProvider) -> None:
        start(store, *(f"s{n}" for n in range(12)))
        assert len(store.top_sessions()) == 10

    def test_reports_of_an_empty_store_are_empty(self, store: SessionDBProvider) -> None:
        assert (store.usage_by_model(), store.top_sessions()) == ([], [])
