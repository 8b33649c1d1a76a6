"""Slash commands about the current session: /model, /status, /usage and /quit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.money import UNKNOWN, session_cost
from hermes.cli.display.times import ago
from hermes.errors import InvalidValue
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.state.rows import AnyRow

LABEL_WIDTH = 16
MAX_MODELS = 20
"""How many models /model lists; the Tab key knows all of them."""


def model(chat: Chat, name: str) -> None:
    """Show the model and the others at its endpoint, or switch to another one."""
    conversation = chat.conversation
    if not name:
        chat.screen.print_text(f"Model: {conversation.model.name} ({conversation.model.provider})")
        _list_models(chat)
        return
    conversation.use(chat.models.open(name))
    chat.screen.print_text(f"Model: {conversation.model.name} ({conversation.model.provider}), from now on")


def _list_models(chat: Chat) -> None:
    """Show what the endpoint offers, if it says so in time."""
    model = chat.conversation.model
    if model.base_url is None:
        chat.screen.print_dim("`hermes setup` chooses another model, tests it and stores its key.")
        return
    names = chat.model_names.names(model)
    if names is None:
        chat.screen.print_dim("The endpoint does not list its models. Type /model NAME to use another one.")
        return
    chat.screen.print_text("\n".join(f"{'*' if name == model.name else ' '} {name}" for name in names[:MAX_MODELS]))
    more = len(names) - MAX_MODELS
    rest = f"{plural(more, 'more model')}. " if more > 0 else ""
    chat.screen.print_dim(f"{rest}Type /model NAME to use another one; the Tab key completes names.")


def status(chat: Chat, _: str) -> None:
    """Show the facts about the session."""
    conversation, now = chat.conversation, time.time()
    row: AnyRow = chat.store.get_session(conversation.session_id) or {}
    facts = {
        "Session": conversation.session_id if row else f"{conversation.session_id} (not stored yet)",
        "Title": conversation.title or "none",
        "Model": f"{conversation.model.name} ({conversation.model.provider})",
        "Directory": conversation.session.cwd or "none",
        "Home": str(chat.agent.home),
    }
    if files := conversation.session.instruction_files:
        facts["Instructions"] = ", ".join(files)
    if row:
        facts |= {
            "Source": str(row["source"]),
            "Started": ago(row["started_at"], now),
            "Last active": ago(row["last_active"], now),
            "Messages": str(row["message_count"]),
            "Tokens": f"{(row['input_tokens'] or 0) + (row['output_tokens'] or 0):,}",
        }
    _list(chat, facts)


def usage(chat: Chat, _: str) -> None:
    """Show the tokens and costs of the session."""
    counted = chat.conversation.usage()
    if not counted:
        chat.screen.print_text("No messages yet, so no usage.")
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
    cost, status = session_cost(counted)
    amount = UNKNOWN if cost is None else f"${cost:.4f}"
    facts["Cost"] = amount if status == amount else f"{amount} ({status})"
    _list(chat, facts)


def leave(chat: Chat, argument: str) -> None:
    """End the chat."""
    if argument:
        raise InvalidValue(f"/quit takes no argument, but got {argument!r}", hint="type /quit alone")
    chat.is_over = True


def _list(chat: Chat, facts: dict[str, str]) -> None:
    chat.screen.print_text("\n".join(f"{f'{label}:':<{LABEL_WIDTH}}{fact}" for label, fact in facts.items()))
