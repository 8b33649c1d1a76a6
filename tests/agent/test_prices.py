"""The cost of a call and its source."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hermes.agent.models.choice import PROVIDERS, Provider
from hermes.agent.models.model import Usage
from hermes.agent.models.prices import FILE, Cost, estimate_cost, known_context_tokens
from hermes.config import PricesConfig, load_config
from hermes_state import SessionDB

LISTED = json.loads(FILE.read_text())
VERSION = LISTED["version"]
MILLION = Usage(input_tokens=1_000_000)


class TestNames:
    @pytest.mark.parametrize(
        ("model", "provider", "price"),
        [
            ("gpt-5-mini", "openai", 0.25),
            ("gpt-5-mini-2025-08-07", "openai", 0.25),
            ("openai/gpt-5-mini", "openrouter", 0.25),
            ("GPT-5-Mini", "custom", 0.25),
            ("gpt-4.1", "openai", 2.0),
            ("gpt-4.1-mini-2025-04-14", "openai", 0.4),
            ("claude-sonnet-4-5", "anthropic", 3.0),
            ("claude-sonnet-4-5-20250929", "anthropic", 3.0),
            ("claude-sonnet-4-5@20250929", "custom", 3.0),
            ("anthropic/claude-sonnet-4.5", "openrouter", 3.0),
            ("claude-3-5-haiku-latest", "anthropic", 0.8),
            ("claude-opus-4-20250514", "anthropic", 15.0),
        ],
    )
    def test_model_is_found_by_any_of_its_names(self, model: str, provider: str, price: float) -> None:
        assert estimate_cost(MILLION, model, provider) == Cost(price, "estimated", "prices.json", VERSION)

    @pytest.mark.parametrize("model", ["gpt-5-pro", "gpt-4o-audio-preview", "gpt-5-mini-turbo", "o3-pro", "x", ""])
    def test_name_that_only_begins_like_a_known_one_is_unknown(self, model: str) -> None:
        assert estimate_cost(MILLION, model, "openai") == Cost(None, "unknown")

    @pytest.mark.parametrize("provider", ["ollama", "lmstudio", "llamacpp", "local", "offline"])
    def test_local_model_costs_nothing(self, provider: str) -> None:
        assert estimate_cost(MILLION, "gpt-5", provider) == Cost(0.0, "included")

    def test_free_model_costs_nothing(self) -> None:
        assert estimate_cost(MILLION, "meta-llama/llama-3.3-70b-instruct:free", "openrouter") == Cost(0.0, "included")

    @pytest.mark.parametrize("provider", [each for each in PROVIDERS.values() if not each.is_local])
    def test_default_models_have_prices(self, provider: Provider) -> None:
        for model in (provider.model, provider.auxiliary):
            assert model
            assert estimate_cost(MILLION, model, "openai").status == "estimated"
            assert known_context_tokens(model)


class TestAmounts:
    def test_every_kind_of_token_is_priced(self) -> None:
        usage = Usage(1_000_000, 1_000_000, cache_read_tokens=1_000_000, cache_write_tokens=1_000_000)
        assert estimate_cost(usage, "claude-sonnet-4-5", "anthropic").amount_usd == pytest.approx(
            3.0 + 15.0 + 0.3 + 3.75
        )

    def test_reasoning_is_part_of_the_output(self) -> None:
        assert estimate_cost(Usage(0, 1_000_000, reasoning_tokens=900_000), "gpt-5-mini", "openai").amount_usd == 2.0

    def test_cost_is_rounded_to_a_billionth_of_a_dollar(self) -> None:
        assert estimate_cost(Usage(1), "gpt-5-nano", "openai").amount_usd == 5e-08
        assert estimate_cost(Usage(3, 7), "gpt-5-mini", "openai").amount_usd == 1.475e-05

    def test_used_kind_without_a_price_makes_the_cost_unknown(self) -> None:
        cost = estimate_cost(Usage(1, 1, cache_write_tokens=1), "gpt-5-mini", "openai")
        assert cost == Cost(None, "unknown", "prices.json", VERSION)

    def test_cost_reported_by_openrouter_is_actual(self) -> None:
        usage = Usage(1_000_000, cost_usd=0.125)
        assert estimate_cost(usage, "openai/gpt-5-mini", "openrouter") == Cost(0.125, "actual", "endpoint")
        assert estimate_cost(usage, "gpt-5-mini", "custom").status == "estimated"


class TestOwnPrices:
    def test_own_prices_take_precedence(self, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").write_text("model: {prices: {my-model: {input: 2, output: 4}, gpt-5: {input: 1}}}")
        own = load_config(tmp_path, environ={}).model.prices
        assert own["my-model"] == PricesConfig(input=2.0, output=4.0)
        assert estimate_cost(Usage(500_000, 250_000), "my-model", "custom", own) == Cost(2.0, "estimated", "config")
        assert estimate_cost(MILLION, "openai/gpt-5-2025-08-07", "openrouter", own) == Cost(1.0, "estimated", "config")
        assert estimate_cost(MILLION, "gpt-5-mini", "openai", own).source == "prices.json"

    def test_kind_missing_from_own_prices_is_unknown(self) -> None:
        assert estimate_cost(Usage(1, 1), "m", "custom", {"m": PricesConfig(input=1.0)}) == Cost(
            None, "unknown", "config"
        )


class TestFile:
    def test_price_list_has_a_date_as_version(self) -> None:
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", VERSION)

    @pytest.mark.parametrize("model", LISTED["models"])
    def test_each_listed_model_has_plausible_prices(self, model: str) -> None:
        listed = LISTED["models"][model]
        assert set(listed) - {"cache_write"} == {"context", "input", "output", "cache_read"}
        assert 0 < listed["cache_read"] < listed["input"] < listed["output"]
        assert known_context_tokens(model) == listed["context"]

    def test_context_window_of_an_unknown_model_is_unknown(self) -> None:
        assert known_context_tokens("x") is None


@pytest.mark.parametrize(
    "cost", [Cost(0.5, "estimated", "prices.json", "1"), Cost(0.25, "actual", "endpoint"), Cost(None, "unknown")]
)
def test_cost_can_be_passed_to_update_token_counts(cost: Cost, tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.update_token_counts("s", 1, 1, **cost.booking)
        row = db.get_session("s")
    assert row is not None
    expected = {"estimated": (0.5, None), "actual": (None, 0.25), "unknown": (None, None)}[cost.status]
    assert (row["estimated_cost_usd"], row["actual_cost_usd"]) == expected
    assert (row["cost_status"], row["cost_source"], row["pricing_version"]) == (cost.status, cost.source, cost.version)
