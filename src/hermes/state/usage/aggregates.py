"""Sums of a period, computed by the database: by day, source, model and tool, never single messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hermes.state.engine import Reading, Values
from hermes.state.operations import chunks, placeholders
from hermes.state.rows import decode_text
from hermes.state.usage.message_counts import MessageCell, count_messages
from hermes.state.usage.period import DAY_S
from hermes.state.usage.period_sessions import IN_PERIOD, IS_PART, InsightsFilter
from hermes.state.usage.skill_calls import SKILL_TOOLS, SkillCall, skill_calls
from hermes.state.usage.totals import UsageTotals

_BEGAN = "CASE WHEN s.started_at < :since THEN :since ELSE s.started_at END"
_ENDED = "CASE WHEN s.last_active > :until THEN :until ELSE s.last_active END"
_DURATION = f"""CASE WHEN COALESCE(s.child_kind, '') = 'delegate' OR {_ENDED} <= {_BEGAN} THEN 0
                     ELSE {_ENDED} - ({_BEGAN}) END"""
"""The time from start to last message; 0 for a delegate, because its parent waits meanwhile."""

_COST = """CASE WHEN u.kind = 'opening'
                THEN COALESCE(NULLIF(u.actual_cost_usd, 0), NULLIF(u.estimated_cost_usd, 0),
                              CASE WHEN s.cost_status = 'included' THEN 0 END)
                ELSE COALESCE(u.actual_cost_usd, u.estimated_cost_usd) END"""
"""The cost of an event, NULL if unknown; an opening event has zeros for unknown costs."""

_TOKENS = "(1.0 * u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens)"
"""A float, like every sum of tokens, because a database's integers can overflow."""

_OWN_TOKENS = """(1.0 * COALESCE(s.input_tokens, 0) + COALESCE(s.output_tokens, 0)
                  + COALESCE(s.cache_read_tokens, 0) + COALESCE(s.cache_write_tokens, 0))"""

MEASURES = ("cost_usd", "tokens", "messages", "tool_calls", "duration_s")
"""The measures by which a conversation can stand out."""


class SessionCounts(NamedTuple):
    """The number of sessions by kind, and their duration."""

    conversations: int = 0
    sessions: int = 0
    continuations: int = 0
    delegates: int = 0
    duration_s: float = 0.0


class SessionCell(NamedTuple):
    """The sessions of one source and model."""

    source: str
    model: str | None
    counts: SessionCounts


class UsageCell(NamedTuple):
    """The usage of one source and model on one local day, numbered from 1970."""

    day: int
    source: str
    model: str | None
    totals: UsageTotals


class ToolCell(NamedTuple):
    """The calls of one tool in the sessions of one source."""

    source: str
    tool: str
    calls: int


class NotableConversation(NamedTuple):
    """The conversation with the highest value of one measure."""

    measure: str
    value: float
    id: str
    title: str | None
    preview: str | None
    source: str
    started_at: float


class Sums(NamedTuple):
    """All sums of a period; missing ones are empty."""

    sessions: Sequence[SessionCell] = ()
    messages: Sequence[MessageCell] = ()
    usage: Sequence[UsageCell] = ()
    tools: Sequence[ToolCell] = ()
    skills: Sequence[SkillCall] = ()
    notable: Sequence[NotableConversation] = ()


def read_sums(tx: Reading, where: InsightsFilter) -> Sums:
    """Read all sums that insights need."""
    tools = _tools(tx, where)
    return Sums(
        sessions=_sessions(tx, where),
        messages=count_messages(tx, where),
        usage=_usage(tx, where),
        tools=tools,
        skills=_skills(tx, where, tools),
        notable=_notable(tx, where),
    )


def _sessions(tx: Reading, where: InsightsFilter) -> list[SessionCell]:
    rows = tx.rows(
        f"""SELECT s.source, s.model,
                   SUM(CASE WHEN s.listed = 1 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN s.last_active >= :since THEN 1 ELSE 0 END),
                   SUM(CASE WHEN s.last_active >= :since AND s.child_kind = 'compression' THEN 1 ELSE 0 END),
                   SUM(CASE WHEN s.last_active >= :since AND s.child_kind = 'delegate' THEN 1 ELSE 0 END),
                   SUM({_DURATION})
            FROM sessions s WHERE {where.active} GROUP BY s.source, s.model""",
        **where.values(),
    )
    return [
        SessionCell(source, decode_text(model), SessionCounts._make([*map(int, counts), float(duration)]))
        for source, model, *counts, duration in rows
    ]


def _usage(tx: Reading, where: InsightsFilter) -> list[UsageCell]:
    # SQLite takes a CROSS JOIN in the order in which it is written: what happened in the period, then whose it was.
    rows = tx.rows(
        f"""SELECT day, source, model,
                   SUM(1.0 * input_tokens), SUM(1.0 * output_tokens), SUM(1.0 * cache_read_tokens),
                   SUM(1.0 * cache_write_tokens), SUM(1.0 * reasoning_tokens), SUM(1.0 * api_call_count),
                   SUM(estimated_cost_usd), SUM(actual_cost_usd), SUM(cost),
                   SUM(CASE WHEN cost IS NULL THEN tokens ELSE 0 END), SUM(CASE WHEN cost = 0 THEN tokens ELSE 0 END)
            FROM (SELECT FLOOR({where.period.local_sql("u.at")} / {DAY_S}) AS day, s.source, u.model, u.input_tokens,
                         u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.reasoning_tokens,
                         u.api_call_count, u.estimated_cost_usd, u.actual_cost_usd, {_COST} AS cost, {_TOKENS} AS tokens
                  FROM usage_events u CROSS JOIN sessions s
                  WHERE s.id = u.session_id AND u.at >= :since AND u.at < :until {where.filter}) AS spent
            GROUP BY day, source, model""",
        **where.values(),
    )
    return [UsageCell(int(day), source, decode_text(model), _totals(sums)) for day, source, model, *sums in rows]


def _totals(sums: list[Any]) -> UsageTotals:
    *counts, estimated, actual, cost, unpriced, included = sums
    money = (float(each or 0) for each in (estimated, actual, cost))
    return UsageTotals._make([*map(round, counts), *money, round(unpriced), round(included)])


def _tools(tx: Reading, where: InsightsFilter) -> list[ToolCell]:
    """Return tool calls from the sessions' counters, or from the tool results if only a part of a session counts."""
    rows = tx.rows(
        f"""SELECT s.source, t.tool_name, SUM(t.calls)
            FROM sessions s JOIN session_tools t ON t.session_id = s.id
            WHERE {where.itself_active} AND NOT {IS_PART} GROUP BY s.source, t.tool_name""",
        **where.values(),
    )
    rows += tx.rows(
        f"""SELECT s.source, m.tool_name, COUNT(*)
            FROM sessions s JOIN messages m ON m.session_id = s.id
            WHERE {where.itself_active} AND {IS_PART} AND {IN_PERIOD} AND m.role = 'tool' AND m.tool_name <> ''
            GROUP BY s.source, m.tool_name""",
        **where.values(),
    )
    return [ToolCell(source, decode_text(tool), int(calls)) for source, tool, calls in rows]


def _skills(tx: Reading, where: InsightsFilter, tools: Sequence[ToolCell]) -> list[SkillCall]:
    """Return the calls of skills; their names are only in the arguments, so only these messages are read."""
    values = where.values()
    # The tools of all sessions are known, except of those of which only a part counts.
    candidates = "" if any(cell.tool in SKILL_TOOLS for cell in tools) else f"AND {IS_PART}"
    users = tx.rows(
        f"""SELECT s.id FROM sessions s WHERE {where.itself_active} {candidates} AND EXISTS (
                SELECT 1 FROM session_tools t WHERE t.session_id = s.id AND t.tool_name IN {SKILL_TOOLS})""",
        **values,
    )
    rows: list[Values] = []
    for some in chunks([session_id for (session_id,) in users]):
        listed, ids = placeholders("id", some)
        rows += tx.rows(
            f"""SELECT m.timestamp, m.tool_calls FROM sessions s JOIN messages m ON m.session_id = s.id
                WHERE s.id IN ({listed}) AND {IN_PERIOD} AND m.tool_calls LIKE '%skill%'""",
            **values,
            **ids,
        )
    return [call for moment, stored in rows for call in skill_calls(moment, stored)]


def _notable(tx: Reading, where: InsightsFilter) -> list[NotableConversation]:
    """Return the conversations that stand out, each with its continuations and delegates."""
    counted = f"FROM messages m WHERE m.session_id = s.id AND {IN_PERIOD}"
    spent = "FROM usage_events u WHERE u.session_id = s.id AND u.at >= :since AND u.at < :until"
    best = " UNION ALL ".join(
        f"""SELECT * FROM (SELECT '{measure}' AS measure, {measure} AS amount, conversation FROM wholes
                           ORDER BY {measure} DESC, conversation LIMIT 1) AS most_{measure}"""
        for measure in MEASURES
    )
    rows = tx.rows(
        f"""WITH parts AS (
                SELECT CASE WHEN s.child_kind = 'delegate'
                            THEN (SELECT COALESCE(p.chain_root, p.id) FROM sessions p WHERE p.id = s.parent_session_id)
                            ELSE COALESCE(s.chain_root, s.id) END AS conversation,
                       CASE WHEN s.child_kind = 'delegate'
                            THEN (SELECT c.listed FROM sessions p JOIN sessions c ON c.id = COALESCE(p.chain_root, p.id)
                                  WHERE p.id = s.parent_session_id)
                            WHEN s.chain_root IS NOT NULL
                            THEN (SELECT c.listed FROM sessions c WHERE c.id = s.chain_root)
                            ELSE s.listed END AS listed,
                       {_DURATION} AS duration_s,
                       CASE WHEN {IS_PART} THEN (SELECT COUNT(*) {counted}) ELSE s.message_count END AS messages,
                       CASE WHEN {IS_PART} THEN (SELECT COUNT(*) {counted} AND m.role = 'tool')
                            ELSE s.tool_call_count END AS tool_calls,
                       CASE WHEN s.started_at < :since THEN (SELECT SUM({_TOKENS}) {spent})
                            ELSE {_OWN_TOKENS} END AS tokens,
                       CASE WHEN s.started_at < :since
                                 OR (s.actual_cost_usd IS NOT NULL AND s.estimated_cost_usd IS NOT NULL)
                            THEN (SELECT SUM({_COST}) {spent})
                            ELSE COALESCE(s.actual_cost_usd, s.estimated_cost_usd) END AS cost_usd
                FROM sessions s WHERE {where.itself_active}),
            wholes AS (
                SELECT conversation, SUM(duration_s) AS duration_s, SUM(messages) AS messages,
                       SUM(tool_calls) AS tool_calls, COALESCE(SUM(tokens), 0) AS tokens,
                       COALESCE(SUM(cost_usd), 0) AS cost_usd
                FROM parts WHERE listed = 1 GROUP BY conversation)
            SELECT measure, amount, s.id, s.title, s.preview, s.source, s.started_at
            FROM ({best}) AS best JOIN sessions s ON s.id = best.conversation WHERE amount > 0""",
        **where.values(),
    )
    found = {
        row[0]: NotableConversation(row[0], float(row[1]), row[2], row[3], decode_text(row[4]), row[5], float(row[6]))
        for row in rows
    }
    return [found[measure] for measure in MEASURES if measure in found]
