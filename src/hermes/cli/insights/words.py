"""The labels and facts of a report, shared by text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hermes.cli.insights.figures import duration, money, number
from hermes.phrases import plural
from hermes.state.usage.aggregates import NotableConversation
from hermes.state.usage.insights import Insights
from hermes.state.usage.totals import UsageTotals

MEASURES = {
    "cost_usd": "cost",
    "tokens": "tokens",
    "messages": "messages",
    "tool_calls": "tool calls",
    "duration_s": "time",
}
NO_TITLE = "—"
MOST_NAMES = 5


class Fact(NamedTuple):
    """A name, a value and a note."""

    name: str
    value: str
    note: str = ""


def report_title(found: Insights) -> str:
    """The title of the report, with its period and source."""
    period = found.period
    what = f"Insights: {plural(period.days, 'day')}, {period.first} to {period.last}"
    return what if found.source is None else f"{what}, source={found.source}"


def overview_facts(found: Insights) -> list[Fact]:
    """Return the main numbers of the report."""
    overview, activity = found.overview, found.activity
    within = [
        plural(count, noun)
        for count, noun in ((overview.continuations, "continuation"), (overview.delegates, "delegate"))
        if count
    ]
    roles = {
        "user": overview.user_messages,
        "assistant": overview.assistant_messages,
        "tool": overview.tool_messages,
    }
    facts = [
        Fact("Conversations", number(overview.conversations), f"with {' and '.join(within)}" if within else ""),
        Fact(
            "Messages", number(overview.messages), ", ".join(f"{number(count)} {role}" for role, count in roles.items())
        ),
        Fact("Tool calls", number(overview.tool_calls)),
        Fact("Model calls", number(overview.usage.api_calls)),
    ]
    if overview.conversations:
        each = f"{overview.messages / overview.conversations:,.1f} messages"
        if overview.duration_s:
            each = f"{duration(overview.duration_s / overview.conversations)} and {each}"
        facts.append(Fact("Time", duration(overview.duration_s), f"on average {each} per conversation"))
    streak = f", longest streak {plural(activity.longest_streak, 'day')}" if activity.longest_streak > 1 else ""
    facts.append(Fact("Active days", number(activity.active_days), f"of {number(found.period.days)}{streak}"))
    return facts


def token_counts(usage: UsageTotals) -> dict[str, int]:
    """Return the tokens by kind, which add up to the total."""
    return {
        "Input": usage.input_tokens,
        "Cache read": usage.cache_read_tokens,
        "Cache write": usage.cache_write_tokens,
        "Output": usage.output_tokens,
    }


def reasoning_note(usage: UsageTotals) -> str:
    """Describe how much of the output was reasoning."""
    return f"{number(usage.reasoning_tokens)} output tokens were reasoning." if usage.reasoning_tokens else ""


def cost_facts(found: Insights) -> list[Fact]:
    """Return the costs, split by how they are known."""
    usage = found.overview.usage
    if usage.cost_status == "none":
        return []
    facts = [
        Fact("Total", money(usage.cost_usd), "without unknown costs" if usage.unpriced_tokens else ""),
        Fact("Estimated", money(usage.estimated_cost_usd), "from the list prices of the models"),
        Fact("Actual", money(usage.actual_cost_usd), "as reported by the providers"),
    ]
    if usage.unpriced_tokens:
        names = [each.model for each in found.models if each.usage.unpriced_tokens]
        facts.append(Fact("Unknown", "?", f"for {number(usage.unpriced_tokens)} tokens of {_join_names(names)}"))
    if usage.included_tokens:
        names = [each.model for each in found.models if each.usage.included_tokens]
        facts.append(Fact("Included", money(0), f"for {number(usage.included_tokens)} tokens of {_join_names(names)}"))
    return facts


def format_cost(usage: UsageTotals) -> str:
    """Format the known cost; a plus sign means that part of the cost is unknown."""
    status = usage.cost_status
    if status == "none":
        return ""
    if status in ("unknown", "included"):
        return status
    return money(usage.cost_usd) + ("+" if status == "partial" else "")


def format_value(notable: NotableConversation) -> str:
    """Format the value by which a conversation is notable."""
    if notable.measure == "cost_usd":
        return money(notable.value)
    return duration(notable.value) if notable.measure == "duration_s" else number(round(notable.value))


def conversation_name(notable: NotableConversation) -> str:
    """The title of a conversation, or else its preview."""
    return notable.title or notable.preview or ""


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join([*names[:MOST_NAMES], *([f"{more} more"] if more > 0 else [])])
