"""Prices and context windows of models: `prices.json`, looked up by the name of the model.

The whole name must match, except for the vendor prefix (`openai/`) and the date (`-2025-08-07`). A name that only
begins like a known one may be another model with another price, so it counts as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypedDict

from hermes.agent.models.choice import FREE
from hermes.agent.models.model import Usage
from hermes.config import PricesConfig

FILE = Path(__file__).with_name("prices.json")

CostStatus = Literal["actual", "estimated", "included", "unknown"]

_DATE = re.compile(r"(-latest|[-@]\d{8}|-\d{4}-\d{2}-\d{2})$")
_PLACES = 9


class CostFields(TypedDict):
    """A cost as arguments of `update_token_counts`."""

    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str
    cost_source: str | None
    pricing_version: str | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a call and its source."""

    amount_usd: float | None
    """Rounded to a billionth of a dollar; None if unknown."""
    status: CostStatus
    source: str | None = None
    """`endpoint`, `config` or `prices.json`; None if the cost has no source."""
    version: str | None = None
    """The version of `prices.json`, if that is the source."""

    @property
    def booking(self) -> CostFields:
        """The cost as stored columns."""
        is_actual = self.status == "actual"
        return {
            "estimated_cost_usd": None if is_actual else self.amount_usd,
            "actual_cost_usd": self.amount_usd if is_actual else None,
            "cost_status": self.status,
            "cost_source": self.source,
            "pricing_version": self.version,
        }


@dataclass(frozen=True, slots=True)
class _PriceList:
    """The content of `prices.json`."""

    version: str
    prices: Mapping[str, PricesConfig]
    context_tokens: Mapping[str, int]


def estimate_cost(usage: Usage, model: str, provider: str, own: Mapping[str, PricesConfig] | None = None) -> Cost:
    """Return the cost of a call; `own` prices, by model, take precedence over those of the file."""
    for name, prices in (own or {}).items():
        if _canonical(name) == _canonical(model):
            return _cost_at(usage, prices, "config", None)
    if usage.cost_usd is not None and provider == "openrouter":  # elsewhere the number may be in any currency
        return Cost(round(usage.cost_usd, _PLACES), "actual", "endpoint")
    if provider in FREE or model.endswith(":free"):
        return Cost(0.0, "included")
    listed = _price_list()
    found = listed.prices.get(_canonical(model))
    return Cost(None, "unknown") if found is None else _cost_at(usage, found, FILE.name, listed.version)


def known_context_tokens(model: str) -> int | None:
    """The context window of a model, or None if unknown."""
    return _price_list().context_tokens.get(_canonical(model))


def _cost_at(usage: Usage, prices: PricesConfig, source: str, version: str | None) -> Cost:
    """Return the cost of the tokens; unknown if a kind of token that was used has no price."""
    amount = 0.0
    for tokens, price in (
        (usage.input_tokens, prices.input),
        (usage.output_tokens, prices.output),
        (usage.cache_read_tokens, prices.cache_read),
        (usage.cache_write_tokens, prices.cache_write),
    ):
        if tokens and price is None:
            return Cost(None, "unknown", source, version)
        amount += tokens * (price or 0.0)
    return Cost(round(amount / 1_000_000, _PLACES), "estimated", source, version)


@cache
def _price_list() -> _PriceList:
    import json

    content = json.loads(FILE.read_text("utf-8"))
    models = {_canonical(name): dict(values) for name, values in content["models"].items()}
    context_tokens = {name: values.pop("context") for name, values in models.items()}
    return _PriceList(
        content["version"], {name: PricesConfig(**values) for name, values in models.items()}, context_tokens
    )


def _canonical(model: str) -> str:
    """Return a name without vendor prefix and date, and with dashes in the version."""
    return _DATE.sub("", model.lower().rpartition("/")[2]).replace(".", "-")
