"""Slash commands about the session as it is: what it is, what it costs, who answers; and the last one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.cli.chat.sitting import Sitting
from hermes.cli.times import ago
from hermes.errors import InvalidValue

if TYPE_CHECKING:
    from hermes.state.rows import AnyRow

LABEL_WIDTH = 16


def model(sitting: Sitting, name: str) -> None:
    """Show who answers, or have somebody else answer from now on."""
    conversation = sitting.conversation
    if not name:
        sitting.screen.say(f"Model: {conversation.model.name} ({conversation.model.provider})")
        return
    conversation.use(sitting.models.open(name))
    sitting.screen.say(f"Model: {conversation.model.name} ({conversation.model.provider}), from now on")


def status(sitting: Sitting, _: str) -> None:
    """Show what the session is."""
    conversation, now = sitting.conversation, time.time()
    row: AnyRow = sitting.store.get_session(conversation.session_id) or {}
    facts = {
        "Session": conversation.session_id if row else f"{conversation.session_id} (not stored yet)",
        "Title": conversation.title or "none",
        "Model": f"{conversation.model.name} ({conversation.model.provider})",
        "Directory": conversation.cwd or "none",
        "Home": str(sitting.agent.home),
    }
    if row:
        facts |= {
            "Source": str(row["source"]),
            "Started": ago(row["started_at"], now),
            "Last active": ago(row["last_active"], now),
            "Messages": str(row["message_count"]),
            "Tokens": f"{(row['input_tokens'] or 0) + (row['output_tokens'] or 0):,}",
        }
    _list(sitting, facts)


def usage(sitting: Sitting, _: str) -> None:
    """Show what the session has taken of tokens and money."""
    counted = sitting.conversation.usage()
    if not counted:
        sitting.screen.say("Nothing was said yet, so nothing was used.")
        return
    names = {
        "Model calls": "api_call_count",
        "Input tokens": "input_tokens",
        "Output tokens": "output_tokens",
        "Cache read": "cache_read_tokens",
        "Cache written": "cache_write_tokens",
        "Reasoning": "reasoning_tokens",
    }
    facts = {label: f"{counted.get(name) or 0:,}" for label, name in names.items()}
    cost = counted.get("actual_cost_usd")
    if cost is None:
        cost = counted.get("estimated_cost_usd")
    facts["Cost"] = f"{'unknown' if cost is None else f'${cost:.4f}'} ({counted.get('cost_status') or 'unknown'})"
    _list(sitting, facts)


def leave(sitting: Sitting, argument: str) -> None:
    """End the chat."""
    if argument:
        raise InvalidValue(f"/quit does not understand {argument!r}", hint="say /quit alone")
    sitting.is_over = True


def _list(sitting: Sitting, facts: dict[str, str]) -> None:
    sitting.screen.say("\n".join(f"{f'{label}:':<{LABEL_WIDTH}}{fact}" for label, fact in facts.items()))
