"""Completions in the chat: commands and session names."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.slash.registry import COMMANDS
from hermes.cli.chat.slash.sessions import recent_sessions
from hermes.cli.chat.terminal.prompt import Suggestions
from hermes.cli.display.terminal import printable

MAX_NAMES = 500


def make_suggestions(chat: Chat) -> Suggestions:
    """Return the completions for a chat."""

    def names() -> Iterable[str]:
        rows = recent_sessions(chat, MAX_NAMES)
        for name in [*(row["title"] for row in rows), *(row["id"] for row in rows)]:
            if name and printable(name) == name:
                yield name

    commands = [f"/{name}" for command in COMMANDS for name in command.names]
    session_commands = [f"/{name}" for command in COMMANDS if command.takes_session for name in command.names]
    return Suggestions(commands, session_commands, names)
