"""Accounting: every model call is booked, and the counters of a session are the sums of its bookings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.accounting import ESTIMATED, Spending
from hermes.agent.conversation import Conversation
from hermes.agent.history.token_estimate import (
    PER_IMAGE,
    PER_MESSAGE,
    compression_limit,
    tokens_of,
    tokens_of_conversation,
)
from hermes.agent.models.model import Usage
from hermes.config import ModelConfig
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import CONFIG, agent_at
from tests.support.conversations import session_of
from tests.support.modelserver import Call, Fail, ModelServer, Say

COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
COUNTED = {
    "prompt_tokens": 100,
    "completion_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 4},
}
SUM = Say(calls=[Call("add", {"one": 1, "other": 2})], usage={"prompt_tokens": 50, "completion_tokens": 5})


def sums(store: SessionDBProvider, session_id: str) -> dict[str, Any]:
    events: list[Any] = [*store.list_usage_events(session_id)]
    return {name: sum(event[name] or 0 for event in events) for name in (*COUNTERS, "api_call_count")}


def test_every_call_of_a_turn_is_booked(store: SessionDBProvider, home: Path) -> None:
    with ModelServer(SUM, Say("3", usage=COUNTED, model="test-model-2026-01-01")) as server:
        outcome = Conversation.start(agent_at(server, store, home), asker=EVERYBODY).say("add")
    row = session_of(store, outcome.session_id)
    assert [row[name] for name in COUNTERS] == [90, 15, 60, 0, 4]
    assert row["api_call_count"] == 2
    assert sums(store, outcome.session_id) == {name: row[name] for name in (*COUNTERS, "api_call_count")}
    assert (row["model"], row["billing_provider"], row["billing_base_url"]) == ("test-model", "custom", server.base_url)
    assert outcome.usage == Usage(90, 15, 60, 0, 4)


def test_cost_is_computed_from_the_prices(store: SessionDBProvider, home: Path) -> None:
    with ModelServer(SUM, Say("3", usage={"prompt_tokens": 60, "completion_tokens": 1})) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        outcome = conversation.say("add")
    cost = (110 * 1.0 + 6 * 10.0) / 1_000_000
    assert outcome.cost == pytest.approx(cost)
    assert conversation.usage()["estimated_cost_usd"] == pytest.approx(cost)
    row = session_of(store, outcome.session_id)
    assert (row["cost_status"], row["cost_source"], outcome.is_estimated) == ("estimated", "config", False)


def test_unknown_price_gives_unknown_cost_instead_of_zero(store: SessionDBProvider, home: Path) -> None:
    config = replace(CONFIG, model=ModelConfig())
    with ModelServer(Say("ok")) as server:
        outcome = Conversation.start(agent_at(server, store, home, config), asker=EVERYBODY).say("hi")
    assert outcome.cost is None
    row = session_of(store, outcome.session_id)
    assert (row["estimated_cost_usd"], row["cost_status"]) == (None, "unknown")


def test_uncounted_tokens_are_estimated_and_marked(store: SessionDBProvider, home: Path) -> None:
    with ModelServer(Say("one two three four", usage=None)) as server:
        outcome = Conversation.start(agent_at(server, store, home), asker=EVERYBODY).say("count")
    assert outcome.is_estimated
    assert outcome.usage.output_tokens == tokens_of("one two three four")
    row = session_of(store, outcome.session_id)
    assert row["input_tokens"] == outcome.usage.input_tokens > 0
    assert row["cost_source"] == f"config, {ESTIMATED}"


def test_cut_answer_is_booked_by_estimate(store: SessionDBProvider, home: Path) -> None:
    with ModelServer(Say("one two three four", cut_after=2)) as server:
        outcome = Conversation.start(agent_at(server, store, home), asker=EVERYBODY).say("count")
    assert outcome.is_estimated
    assert session_of(store, outcome.session_id)["output_tokens"] == tokens_of("one two ")


def test_call_without_an_answer_costs_nothing(store: SessionDBProvider, home: Path) -> None:
    with ModelServer(Fail(400)) as server:
        outcome = Conversation.start(agent_at(server, store, home), asker=EVERYBODY).say("count")
    assert (outcome.usage, outcome.cost) == (Usage(), 0.0)
    assert store.list_usage_events(outcome.session_id) == []


def test_spending_adds_up() -> None:
    one = Spending(Usage(1, 2, 3, 4, 5), 0.5)
    assert one + Spending(Usage(1, 1, 1, 1, 1), 0.25, is_estimated=True) == Spending(Usage(2, 3, 4, 5, 6), 0.75, True)
    assert (one + Spending(cost_usd=None)).cost_usd is None


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fiver", 2), ("你好世界", 3), ("😀😀", 2), ("\ud800", 1)]
)
def test_tokens_are_estimated_by_bytes(text: str, tokens: int) -> None:
    assert tokens_of(text) == tokens


def test_estimate_of_a_conversation_includes_calls_and_images() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    call = {"id": "c", "type": "function", "function": {"name": "abcd", "arguments": "{}{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "four"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    assert tokens_of_conversation(messages) == 2 * PER_MESSAGE + 1 + PER_IMAGE + 2
    assert tokens_of_conversation([], [{"type": "function"}]) > 0


def test_compression_limit_is_a_share_of_the_context_window() -> None:
    assert [compression_limit(1_000, 0.5), compression_limit(1_000, 7.0), compression_limit(None, 0.5)] == [
        500,
        1_000,
        64_000,
    ]
