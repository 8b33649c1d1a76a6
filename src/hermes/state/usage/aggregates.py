"""What happened in a period, added up by the database: sums by day, source, model and tool, never single messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hermes.state.engine import Reading, Values
from hermes.state.operations import chunks, placeholders
from hermes.state.rows import decode_text
from hermes.state.sessions.records import activity_tick
from hermes.state.usage.period import DAY_S, HOUR_S, Period
from hermes.state.usage.skill_calls import SKILL_TOOLS, SkillCall, skill_calls
from hermes.state.usage.totals import UsageTotals

_FROM = """CASE WHEN COALESCE(s.child_kind, '') IN ('compression', 'branch') AND s.started_at > :since
                THEN s.started_at ELSE :since END"""
"""From when on the messages of a session count: compressions and branches begin with copies of older ones."""

_IS_PART = "(s.started_at < :since OR COALESCE(s.child_kind, '') IN ('compression', 'branch'))"
"""Whether only some of a session's messages count, so that its own counters do not tell how many."""

_SAID = f"m.timestamp >= {_FROM} AND m.timestamp < :until AND m.active = 1"

_BEGAN = "CASE WHEN s.started_at < :since THEN :since ELSE s.started_at END"
_ENDED = "CASE WHEN s.last_active > :until THEN :until ELSE s.last_active END"
_DURATION = f"""CASE WHEN COALESCE(s.child_kind, '') = 'delegate' OR {_ENDED} <= {_BEGAN} THEN 0
                     ELSE {_ENDED} - ({_BEGAN}) END"""
"""From start to last message; a delegate works while its parent waits, so its time is not counted again."""

_COST = """CASE WHEN u.kind = 'opening'
                THEN COALESCE(NULLIF(u.actual_cost_usd, 0), NULLIF(u.estimated_cost_usd, 0),
                              CASE WHEN s.cost_status = 'included' THEN 0 END)
                ELSE COALESCE(u.actual_cost_usd, u.estimated_cost_usd) END"""
"""A booking's cost, NULL if unknown; an opening one has zeros where nobody knows."""

_TOKENS = "(1.0 * u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens)"
"""Not as a whole number, like every sum of tokens: the whole numbers of a database have an end."""

_OWN_TOKENS = """(1.0 * COALESCE(s.input_tokens, 0) + COALESCE(s.output_tokens, 0)
                  + COALESCE(s.cache_read_tokens, 0) + COALESCE(s.cache_write_tokens, 0))"""

MEASURES = ("cost_usd", "tokens", "messages", "tool_calls", "duration_s")
"""By what a conversation can stand out."""


class InsightsFilter(NamedTuple):
    """Which sessions to look at, and when."""

    period: Period
    source: str | None = None
    owner: str | None = None

    @property
    def filter(self) -> str:
        """Conditions on a session `s`, whenever it was active."""
        wanted = [f"AND s.{name} = :{name}" for name in ("source", "owner") if getattr(self, name) is not None]
        return " ".join(wanted)

    @property
    def active(self) -> str:
        """Conditions on a session `s` that it, or what continues it, was active in the period; walks the list index."""
        return f"""s.listed IN (0, 1) AND s.archived IN (0, 1) AND s.active_tick >= :tick AND s.chain_active >= :since
                   {self.filter}"""

    @property
    def itself_active(self) -> str:
        """Conditions on a session `s` that it was active itself."""
        return f"{self.active} AND s.last_active >= :since"

    def values(self) -> dict[str, Any]:
        """What is bound in these conditions."""
        return {
            **self.period.values(),
            "tick": activity_tick(self.period.since),
            "source": self.source,
            "owner": self.owner,
        }


class SessionCounts(NamedTuple):
    """How many sessions there were, of what kind, and how long they took."""

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


class MessageCell(NamedTuple):
    """The messages of one source in one local hour, which is numbered from 1970 on."""

    hour: int
    source: str
    messages: int
    user: int
    assistant: int
    tool: int


class UsageCell(NamedTuple):
    """What was spent for one source and model on one local day, which is numbered from 1970 on."""

    day: int
    source: str
    model: str | None
    totals: UsageTotals


class ToolCell(NamedTuple):
    """How often sessions of one source called a tool."""

    source: str
    tool: str
    calls: int


class NotableConversation(NamedTuple):
    """The conversation that has the most of something."""

    measure: str
    value: float
    id: str
    title: str | None
    preview: str | None
    source: str
    started_at: float


class Sums(NamedTuple):
    """All of a period; nothing unless it is given."""

    sessions: Sequence[SessionCell] = ()
    messages: Sequence[MessageCell] = ()
    usage: Sequence[UsageCell] = ()
    tools: Sequence[ToolCell] = ()
    skills: Sequence[SkillCall] = ()
    notable: Sequence[NotableConversation] = ()


def read_sums(tx: Reading, where: InsightsFilter) -> Sums:
    """Add everything up that insights tell of."""
    return Sums(
        sessions=_sessions(tx, where),
        messages=_messages(tx, where),
        usage=_usage(tx, where),
        tools=_tools(tx, where),
        skills=_skills(tx, where),
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


def _messages(tx: Reading, where: InsightsFilter) -> list[MessageCell]:
    rows = tx.rows(
        f"""SELECT FLOOR({where.period.local_sql("m.timestamp")} / {HOUR_S}), s.source, COUNT(*),
                   SUM(CASE WHEN m.role = 'user' THEN 1 ELSE 0 END),
                   SUM(CASE WHEN m.role = 'assistant' THEN 1 ELSE 0 END),
                   SUM(CASE WHEN m.role = 'tool' THEN 1 ELSE 0 END)
            FROM sessions s JOIN messages m ON m.session_id = s.id
            WHERE {where.itself_active} AND {_SAID} GROUP BY 1, 2""",
        **where.values(),
    )
    return [MessageCell(int(hour), source, *map(int, counts)) for hour, source, *counts in rows]


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
    """Calls as they are counted per session; where only a part of a session counts, the results in that part."""
    rows = tx.rows(
        f"""SELECT s.source, t.tool_name, SUM(t.calls)
            FROM sessions s JOIN session_tools t ON t.session_id = s.id
            WHERE {where.itself_active} AND NOT {_IS_PART} GROUP BY s.source, t.tool_name""",
        **where.values(),
    )
    rows += tx.rows(
        f"""SELECT s.source, m.tool_name, COUNT(*)
            FROM sessions s JOIN messages m ON m.session_id = s.id
            WHERE {where.itself_active} AND {_IS_PART} AND {_SAID} AND m.role = 'tool' AND m.tool_name <> ''
            GROUP BY s.source, m.tool_name""",
        **where.values(),
    )
    return [ToolCell(source, decode_text(tool), int(calls)) for source, tool, calls in rows]


def _skills(tx: Reading, where: InsightsFilter) -> list[SkillCall]:
    """The calls of skills; which one was called stands in the arguments only, so these calls alone are read."""
    values = where.values()
    users = tx.rows(
        f"""SELECT s.id FROM sessions s WHERE {where.itself_active} AND EXISTS (
                SELECT 1 FROM session_tools t WHERE t.session_id = s.id AND t.tool_name IN {SKILL_TOOLS})""",
        **values,
    )
    rows: list[Values] = []
    for some in chunks([session_id for (session_id,) in users]):
        listed, ids = placeholders("id", some)
        rows += tx.rows(
            f"""SELECT m.timestamp, m.tool_calls FROM sessions s JOIN messages m ON m.session_id = s.id
                WHERE s.id IN ({listed}) AND {_SAID} AND m.tool_calls LIKE '%skill%'""",
            **values,
            **ids,
        )
    return [call for moment, stored in rows for call in skill_calls(moment, stored)]


def _notable(tx: Reading, where: InsightsFilter) -> list[NotableConversation]:
    """The conversations that stand out, each with all that continues it and with the delegates that it had."""
    said = f"FROM messages m WHERE m.session_id = s.id AND {_SAID}"
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
                       {_DURATION} AS duration_s,
                       CASE WHEN {_IS_PART} THEN (SELECT COUNT(*) {said}) ELSE s.message_count END AS messages,
                       CASE WHEN {_IS_PART} THEN (SELECT COUNT(*) {said} AND m.role = 'tool')
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
                FROM parts JOIN sessions c ON c.id = conversation AND c.listed = 1 GROUP BY conversation)
            SELECT measure, amount, s.id, s.title, s.preview, s.source, s.started_at
            FROM ({best}) AS best JOIN sessions s ON s.id = best.conversation WHERE amount > 0""",
        **where.values(),
    )
    found = {
        row[0]: NotableConversation(row[0], float(row[1]), row[2], row[3], decode_text(row[4]), row[5], float(row[6]))
        for row in rows
    }
    return [found[measure] for measure in MEASURES if measure in found]
