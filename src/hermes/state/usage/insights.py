"""Insights: messages, usage and costs of a period.

A conversation is one entry of a list: its continuations after a compression and its delegates count with it, not as
conversations of their own. Messages and events count when they happened; a session counts if its last activity is in
the period or later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hermes.state.operations import Operations, read
from hermes.state.usage.activity import Activity, build_activity
from hermes.state.usage.aggregates import NotableConversation, SessionCell, SessionCounts, Sums, read_sums
from hermes.state.usage.period import Period
from hermes.state.usage.period_sessions import InsightsFilter
from hermes.state.usage.skill_calls import SkillCall
from hermes.state.usage.totals import UsageTotals, add_totals

UNKNOWN_MODEL = "unknown"


class Overview(NamedTuple):
    """All sessions together."""

    conversations: int
    sessions: int
    continuations: int
    delegates: int
    duration_s: float
    messages: int
    user_messages: int
    assistant_messages: int
    tool_messages: int
    tool_calls: int
    usage: UsageTotals


class ModelUse(NamedTuple):
    """One model, from any provider."""

    model: str
    conversations: int
    usage: UsageTotals


class PlatformUse(NamedTuple):
    """One source of sessions."""

    source: str
    conversations: int
    sessions: int
    messages: int
    tool_calls: int
    usage: UsageTotals


class ToolUse(NamedTuple):
    """One tool."""

    tool: str
    calls: int
    share: float
    """The share of all calls."""


class SkillUse(NamedTuple):
    """One skill."""

    skill: str
    loads: int
    edits: int
    last_used_at: float

    @property
    def uses(self) -> int:
        """Loads and edits together."""
        return self.loads + self.edits


class Insights(NamedTuple):
    """All insights of a period."""

    period: Period
    source: str | None
    overview: Overview
    models: list[ModelUse]
    platforms: list[PlatformUse]
    tools: list[ToolUse]
    skills: list[SkillUse]
    activity: Activity
    notable: Sequence[NotableConversation]

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened at all."""
        return not (self.overview.sessions or self.overview.conversations or self.overview.usage != UsageTotals())


def read_insights(
    store: Operations, period: Period, *, source: str | None = None, owner: str | None = None
) -> Insights:
    """Return the insights of a period, for all sessions or for one source or owner."""
    return build_insights(period, source, read(store, lambda tx: read_sums(tx, InsightsFilter(period, source, owner))))


def build_insights(period: Period, source: str | None, sums: Sums) -> Insights:
    """Return the insights from the sums of a period."""
    return Insights(
        period=period,
        source=source,
        overview=_overview(sums),
        models=_models(sums),
        platforms=_platforms(sums),
        tools=_tools(sums),
        skills=_skills(sums.skills),
        activity=build_activity(sums.messages, sums.usage),
        notable=sums.notable,
    )


def _overview(sums: Sums) -> Overview:
    counts = _add_counts(sums.sessions)
    return Overview(
        **counts._asdict(),
        messages=sum(cell.messages for cell in sums.messages),
        user_messages=sum(cell.user for cell in sums.messages),
        assistant_messages=sum(cell.assistant for cell in sums.messages),
        tool_messages=sum(cell.tool for cell in sums.messages),
        tool_calls=sum(cell.calls for cell in sums.tools),
        usage=add_totals(cell.totals for cell in sums.usage),
    )


def _models(sums: Sums) -> list[ModelUse]:
    """Return models by their bare names, those with the most tokens first."""
    conversations: Counter[str] = Counter()
    for session in sums.sessions:
        conversations[_bare_name(session.model)] += session.counts.conversations
    usage = _add_by_name((_bare_name(cell.model), cell.totals) for cell in sums.usage)
    names = {name for name, count in conversations.items() if count} | usage.keys()
    found = [ModelUse(name, conversations[name], usage.get(name, UsageTotals())) for name in names]
    return sorted(found, key=lambda each: (-each.usage.total_tokens, -each.conversations, each.model))


def _platforms(sums: Sums) -> list[PlatformUse]:
    """Return sources, those with the most conversations first."""
    messages: Counter[str] = Counter()
    for message in sums.messages:
        messages[message.source] += message.messages
    calls: Counter[str] = Counter()
    for tool in sums.tools:
        calls[tool.source] += tool.calls
    usage = _add_by_name((cell.source, cell.totals) for cell in sums.usage)
    sessions: dict[str, list[SessionCell]] = defaultdict(list)
    for session in sums.sessions:
        sessions[session.source].append(session)
    found = []
    for source in sessions.keys() | usage.keys():
        counts = _add_counts(sessions[source])
        found.append(
            PlatformUse(
                source=source,
                conversations=counts.conversations,
                sessions=counts.sessions,
                messages=messages[source],
                tool_calls=calls[source],
                usage=usage.get(source, UsageTotals()),
            )
        )
    return sorted(found, key=lambda each: (-each.conversations, -each.messages, each.source))


def _tools(sums: Sums) -> list[ToolUse]:
    """Return tools, the most used first."""
    calls: Counter[str] = Counter()
    for cell in sums.tools:
        calls[cell.tool] += cell.calls
    every = calls.total()
    found = [ToolUse(tool, count, count / every) for tool, count in calls.items() if count > 0]
    return sorted(found, key=lambda each: (-each.calls, each.tool))


def _skills(calls: Iterable[SkillCall]) -> list[SkillUse]:
    """Return skills, the most used first."""
    by_skill: dict[str, list[SkillCall]] = defaultdict(list)
    for call in calls:
        by_skill[call.skill].append(call)
    found = []
    for skill, some in by_skill.items():
        edits = sum(call.is_edit for call in some)
        found.append(SkillUse(skill, len(some) - edits, edits, max(call.moment for call in some)))
    return sorted(found, key=lambda each: (-each.uses, -each.loads, -each.last_used_at, each.skill))


def _add_counts(cells: Iterable[SessionCell]) -> SessionCounts:
    return SessionCounts(*map(sum, zip(SessionCounts(), *(cell.counts for cell in cells), strict=True)))


def _add_by_name(named: Iterator[tuple[str, UsageTotals]]) -> dict[str, UsageTotals]:
    by_name: dict[str, list[UsageTotals]] = defaultdict(list)
    for name, totals in named:
        by_name[name].append(totals)
    return {name: add_totals(some) for name, some in by_name.items()}


def _bare_name(model: str | None) -> str:
    """Return a model's name without its provider."""
    return (model or "").rpartition("/")[2].strip() or UNKNOWN_MODEL
