"""The sums of a period as a store would return them, without a store."""

from __future__ import annotations

from datetime import date

from hermes.state.usage.aggregates import (
    NotableConversation,
    SessionCell,
    SessionCounts,
    Sums,
    ToolCell,
    UsageCell,
)
from hermes.state.usage.insights import Insights, build_insights
from hermes.state.usage.message_counts import MessageCell
from hermes.state.usage.period import last_days
from hermes.state.usage.skill_calls import SkillCall
from hermes.state.usage.totals import UsageTotals
from tests.support.zones import local_zone

NOON = 1_767_268_800.0
"""Twelve o'clock UTC on Thursday, the first of January 2026."""
HOUR_S, DAY_S = 3600, 86_400
TODAY = date(2026, 1, 1).toordinal() - date(1970, 1, 1).toordinal()

CLAUDE, GPT, QWEN, HOUSE = "anthropic/claude-opus-4.5", "openai/gpt-5", "通义千问-3-coder", "house-model 🏠"

SUMS = Sums(
    sessions=[
        SessionCell("cli", CLAUDE, SessionCounts(24, 31, 4, 3, 40_000.0)),
        SessionCell("cli", QWEN, SessionCounts(5, 5, 0, 0, 3_600.0)),
        SessionCell("telegram", GPT, SessionCounts(12, 12, 0, 0, 86_400.0)),
        SessionCell("subagent", HOUSE, SessionCounts(0, 3, 0, 3, 0.0)),
    ],
    messages=[
        MessageCell((TODAY - day) * 24 + hour, source, 3 * (day % 4) + hour % 5 + 1, day % 4 + 1, day % 3, hour % 2)
        for day in (0, 1, 2, 3, 5, 8, 9, 13, 14, 15, 16, 20, 29)
        for hour, source in ((7, "cli"), (9, "telegram"), (10, "cli"), (15, "cli"), (22, "subagent"))
    ],
    usage=[
        UsageCell(
            TODAY, "cli", CLAUDE, UsageTotals(120_000, 30_000, 900_000, 45_000, 9_000, 210, 12.5, 0.0, 12.5, 0, 0)
        ),
        UsageCell(TODAY - 1, "cli", QWEN, UsageTotals(80_000, 9_000, 0, 0, 0, 44, 0.0, 0.0, 0.0, 0, 89_000)),
        UsageCell(
            TODAY - 9, "telegram", GPT, UsageTotals(33_000, 4_000, 12_000, 0, 700, 31, 0.0, 0.0042, 0.0042, 0, 0)
        ),
        UsageCell(TODAY - 9, "telegram", "gpt-5", UsageTotals(3_000, 400, 0, 0, 70, 3, 0.0, 0.25, 0.25, 0, 0)),
        UsageCell(TODAY - 20, "subagent", HOUSE, UsageTotals(6_000, 600, 0, 0, 0, 9, 0.0, 0.0, 0.0, 6_600, 0)),
        UsageCell(TODAY - 20, "subagent", CLAUDE, UsageTotals(1_000, 100, 0, 0, 0, 2, 0.0, 0.0, 0.0, 1_100, 0)),
    ],
    tools=[
        ToolCell("cli", "terminal", 210),
        ToolCell("telegram", "terminal", 11),
        ToolCell("cli", "read_file", 99),
        ToolCell("cli", "検索", 12),
        *(ToolCell("cli", f"mcp_calendar_list_events_{number:02}", 3) for number in range(15)),
    ],
    skills=[
        SkillCall("release-notes", False, NOON - 3 * HOUR_S),
        SkillCall("release-notes", True, NOON - 2 * DAY_S),
        SkillCall("日報", False, NOON - 9 * DAY_S),
    ],
    notable=[
        NotableConversation("cost_usd", 7.25, "20251229_190312_a1b2c3d4", "refactoring auth", None, "cli", NOON),
        NotableConversation("tokens", 654_321.0, "20251229_190312_a1b2c3d4", "refactoring auth", None, "cli", NOON),
        NotableConversation("messages", 61.0, "20251221_101500_f9a8b7c6", "京都旅行の計画", None, "telegram", NOON),
        NotableConversation("tool_calls", 40.0, "20251220_081200_0c0ffee0", "team stand-up 🎉", None, "cli", NOON),
        NotableConversation(
            "duration_s", 9_000.0, "20251218_170000_77aa88bb", None, "Draft a letter to the landlord", "cli", NOON
        ),
    ],
)


def sample(sums: Sums = SUMS, days: int = 30, source: str | None = None) -> Insights:
    """Insights made of these sums."""
    with local_zone("UTC0"):
        return build_insights(last_days(days, NOON), source, sums)
