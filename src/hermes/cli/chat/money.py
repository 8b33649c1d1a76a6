"""The cost of a session, as the chat shows it."""

from __future__ import annotations

from hermes.state.rows import AnyRow

UNKNOWN = "unknown"
_SMALL = 0.01


def session_cost(counted: AnyRow) -> tuple[float | None, str]:
    """Return the cost of a session in US dollars, None if it is unknown, and where the number comes from."""
    cost = counted.get("actual_cost_usd")
    if cost is None:
        cost = counted.get("estimated_cost_usd")
    return cost, str(counted.get("cost_status") or UNKNOWN)


def format_dollars(amount: float) -> str:
    """`$0.0031`, `$1.25`."""
    return f"${amount:.4f}" if amount < _SMALL else f"${amount:.2f}"
