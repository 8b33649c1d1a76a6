"""Token counts and costs, summed up from events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class UsageTotals(NamedTuple):
    """The sums of some events."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """How many of the output tokens were reasoning."""
    api_calls: int = 0
    estimated_cost_usd: float = 0.0
    actual_cost_usd: float = 0.0
    cost_usd: float = 0.0
    """The known cost: of each event the actual cost, or else the estimate."""
    unpriced_tokens: int = 0
    """Tokens of events without a known cost."""
    included_tokens: int = 0
    """Tokens of events that are included in a plan and cost nothing extra."""

    @property
    def total_tokens(self) -> int:
        """All tokens, each counted once."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def cost_status(self) -> str:
        """How well the cost is known: `unknown`, `partial`, `known`, `included` or, without any tokens, `none`."""
        if not self.total_tokens:
            return "known" if self.cost_usd else "none"
        if self.unpriced_tokens:
            return "unknown" if self.unpriced_tokens == self.total_tokens and not self.cost_usd else "partial"
        return "known" if self.cost_usd else "included"


def add_totals(totals: Iterable[UsageTotals]) -> UsageTotals:
    """Return the sum of all totals."""
    return UsageTotals(*map(sum, zip(UsageTotals(), *totals, strict=True)))
