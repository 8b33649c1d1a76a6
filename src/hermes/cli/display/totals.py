"""The tokens and the cost of a session, in one line."""

from __future__ import annotations

from hermes.cli.insights.figures import money, number
from hermes.state.rows import AnyRow

_READ = ("input_tokens", "cache_read_tokens", "cache_write_tokens")


def format_totals(row: AnyRow) -> str:
    """Format `1,234 read, 56 written, $0.012 (estimated)`; empty for a session that has used no tokens."""
    read, written = sum(row.get(name) or 0 for name in _READ), row.get("output_tokens") or 0
    if not read and not written:
        return ""
    parts = [f"{number(read)} read", f"{number(written)} written"]
    status = row.get("cost_status")
    cost = row.get("actual_cost_usd")
    if cost is None:
        cost = row.get("estimated_cost_usd")
    if cost:
        parts.append(f"{money(cost)} ({status})" if status and status != "actual" else money(cost))
    elif status == "unknown":
        parts.append("cost unknown")
    return ", ".join(parts)
