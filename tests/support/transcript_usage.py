"""A month of random use, for the transcripts about tokens and costs."""

from __future__ import annotations

import json
import time
from random import Random
from typing import Any

from hermes_state import SessionDB
from tests.support.transcript_home import DAY, HOUR, NOW, Home

MODELS = ("anthropic/claude-opus-4.5", "通义千问-3-coder", "openai/gpt-5", "house-model")
QUESTIONS = (
    "Check the test failures",
    "Summarise the stand-up",
    "Write the release notes",
    "Which index did we choose?",
)
TOOLS = (
    *["terminal"] * 6,
    *["read_file"] * 4,
    "session_search",
    "session_search",
    "memory",
    "skill_view",
    "skill_manage",
)
SKILLS = ("release-notes", "pdf-tables", "日報")


def used(home: Home) -> None:
    """A month of conversations on three platforms with four models."""
    chance = Random(7)  # the same every time
    for number in range(38):
        day = NOW - 10 * HOUR - DAY * int(29 * chance.random())
        at = min(day + int(chance.triangular(7, 22, 15) * HOUR), NOW - 2 * HOUR)
        session_id = f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime(at))}_{number:08x}"
        source, model = chance.choice(["cli", "cli", "telegram", "discord"]), chance.choices(MODELS, [9, 6, 3, 1])[0]
        _talk(home, chance, at, session_id, source, model)
        if number % 12 == 5:
            with home.open(NOW - at) as db:
                db.end_session(session_id, "compression")
            _talk(home, chance, at + HOUR, f"{session_id[:-8]}{number + 256:08x}", source, model, session_id)
        if number % 5 == 2:
            child = f"{session_id[:-8]}{number + 512:08x}"
            _talk(home, chance, at + 90, child, "subagent", model, session_id, child_kind="delegate")


def _talk(
    home: Home,
    chance: Random,
    at: float,
    session_id: str,
    source: str,
    model: str,
    parent: str | None = None,
    **kind: Any,
) -> None:
    """Store a session with several turns, each with its tokens and sometimes with a tool call."""
    with SessionDB(home.database, clock=lambda: at) as db:
        db.create_session(session_id, source, model=model, started_at=at, parent_session_id=parent, **kind)
        for turn in range(chance.randrange(2, 9)):
            db.append_message(session_id, "user", chance.choice(QUESTIONS), timestamp=at)
            if chance.random() < 0.6:
                at += 20
                tool = chance.choice(TOOLS)
                arguments = json.dumps({"name": chance.choice(SKILLS)} if tool.startswith("skill") else {"turn": turn})
                call = {"id": "1", "type": "function", "function": {"name": tool, "arguments": arguments}}
                db.append_message(session_id, "assistant", None, tool_calls=[call], timestamp=at)
                db.append_message(session_id, "tool", "done", tool_name=tool, tool_call_id="1", timestamp=at)
            at += chance.randrange(20, 400)
            db.append_message(session_id, "assistant", "Done.", timestamp=at)
            _book(db, session_id, model, chance)


def _book(db: SessionDB, session_id: str, model: str, chance: Random) -> None:
    tokens: dict[str, Any] = {
        "input_tokens": chance.randrange(200, 3_000),
        "cache_read_tokens": chance.randrange(2_000, 16_000),
        "cache_write_tokens": chance.randrange(1_500),
        "output_tokens": chance.randrange(400, 900),
        "reasoning_tokens": chance.randrange(300),
    }
    price = round(sum(tokens.values()) * 1.1e-5, 6)
    cost: dict[str, Any] = {
        "anthropic/claude-opus-4.5": {"estimated_cost_usd": price, "cost_status": "estimated"},
        "openai/gpt-5": {"actual_cost_usd": price, "cost_status": "actual"},
        "通义千问-3-coder": {"estimated_cost_usd": 0.0, "cost_status": "included"},
    }.get(model, {"cost_status": "unknown"})
    db.update_token_counts(session_id, model=model, api_call_count=1, **tokens, **cost)
