"""Accounting: books the tokens and cost of each model call to its session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from hermes.agent.history.token_estimate import tokens_of, tokens_of_conversation
from hermes.agent.models.model import Message, Model, Reply, ToolSchema, Usage
from hermes.agent.models.prices import estimate_cost
from hermes.errors import StoreError, UnknownSession
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.config import ModelConfig
    from hermes.state.owner_view import OwnerView

ESTIMATED = "estimated tokens"
"""Stored as the source of the cost when the endpoint reported no token counts."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Tokens and money."""

    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    """None if the price is unknown."""
    is_estimated: bool = False
    """Whether the tokens are estimated, because an endpoint reported none."""

    def __add__(self, other: Spending) -> Spending:
        unknown = self.cost_usd is None or other.cost_usd is None
        return Spending(
            _sum(self.usage, other.usage),
            None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
            self.is_estimated or other.is_estimated,
        )


class Accounts:
    """Computes the cost of model calls and stores it."""

    def __init__(self, settings: ModelConfig) -> None:
        self._prices = settings.prices

    def book(
        self,
        store: OwnerView,
        session_id: str,
        model: Model,
        reply: Reply,
        prompt: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
    ) -> Spending:
        """Book one call and return what it used; tokens are estimated (and marked so) if the endpoint reported none."""
        usage = reply.usage or estimated_usage(reply, prompt, tools)
        is_estimated = reply.usage is None
        name = reply.model or model.name
        cost = estimate_cost(usage, name, model.provider, self._prices)
        if is_estimated:
            cost = replace(cost, source=f"{cost.source}, {ESTIMATED}" if cost.source else ESTIMATED)
        try:
            store.update_token_counts(
                session_id,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                api_call_count=1,
                model=name,
                billing_provider=model.provider,
                billing_base_url=model.base_url,
                **cost.booking,
            )
        except (StoreError, UnknownSession) as error:
            # The answer matters more than its cost, and storing the next message reports the failure of the store.
            warn(__name__, "the usage of %s in session %s is not stored: %s", name, session_id, error)
        return Spending(usage, cost.amount_usd, is_estimated)


def estimated_usage(reply: Reply, prompt: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> Usage:
    """Estimate the tokens of a call."""
    texts = [reply.text, reply.reasoning or "", *(f"{call.name}{call.arguments}" for call in reply.tool_calls)]
    return Usage(
        input_tokens=tokens_of_conversation(prompt, tools),
        output_tokens=sum(map(tokens_of, texts)),
        reasoning_tokens=tokens_of(reply.reasoning or ""),
    )


def _sum(one: Usage, other: Usage) -> Usage:
    counts = {
        each.name: getattr(one, each.name) + getattr(other, each.name)
        for each in fields(Usage)
        if each.name != "cost_usd"
    }
    return Usage(**counts)
