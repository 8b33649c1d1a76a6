"""The sentences about limits."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from hermes.gateway.people.times import span

if TYPE_CHECKING:
    from hermes.state.lanes.quotas import QuotaLimit, QuotaLimits, QuotaUsage


class Whose(Enum):
    """Whose limit it is."""

    USER = "Your"
    CHAT = "This chat's"


def too_long(characters: int, most: int) -> str:
    """Return why a message is refused that is too long."""
    return f"The message has {characters:,} characters; at most {most:,} are accepted. Please send a shorter one."


def used_up(whose: Whose, limit: QuotaLimit, most: float, end: datetime, now: float) -> str:
    """Return why a turn is refused: which limit is reached, and when it ends."""
    wait = span(max(60.0, end.timestamp() - now))
    is_one = limit == "turns" and most == 1
    return (
        f"{whose.value} {amount(limit, most)} of today {'is' if is_one else 'are'} used up."
        f" You can go on after {end:%H:%M} ({zone_name(end)}), in {wait}."
    )


def used_today(whose: Whose, used: QuotaUsage, limits: QuotaLimits) -> dict[str, str]:
    """Return what is used of each limit, with a label each."""
    facts: dict[str, str] = {}
    if limits.turns is not None:
        facts[f"{whose.value} turns today"] = f"{used.turns:,} of {limits.turns:,}"
    if limits.tokens is not None:
        facts[f"{whose.value} tokens today"] = f"{used.tokens:,} of {limits.tokens:,}"
    if limits.cost_usd is not None:
        facts[f"{whose.value} cost today"] = f"${used.cost_usd:,.2f} of ${limits.cost_usd:,.2f}"
    return facts


def amount(limit: QuotaLimit, most: float) -> str:
    """Return a limit with its unit: `20 turns`, `1,000 tokens`, `5.00 US dollars`."""
    if limit == "cost_usd":
        return f"{most:,.2f} US dollars"
    noun = {"turns": "turn", "tokens": "token"}[limit]
    return f"{int(most):,} {noun}{'' if most == 1 else 's'}"


def zone_name(moment: datetime) -> str:
    """Return the name of the time zone of a moment, such as Europe/Berlin or CET."""
    return str(getattr(moment.tzinfo, "key", None) or moment.tzname() or "local time")
