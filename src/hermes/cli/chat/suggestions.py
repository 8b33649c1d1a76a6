"""What can be completed in the chat: commands, and the names of sessions."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.cli.chat.prompt import Suggestions
from hermes.cli.chat.sitting import Sitting
from hermes.cli.chat.slash.registry import COMMANDS
from hermes.cli.chat.slash.sessions import recent_sessions
from hermes.cli.terminal import printable

MAX_NAMES = 500


def suggestions_for(sitting: Sitting) -> Suggestions:
    """What is completed for somebody who sits here."""

    def names() -> Iterable[str]:
        rows = recent_sessions(sitting, MAX_NAMES)
        for name in [*(row["title"] for row in rows), *(row["id"] for row in rows)]:
            if name and printable(name) == name:
                yield name

    commands = [f"/{name}" for command in COMMANDS for name in command.names]
    naming = [f"/{name}" for command in COMMANDS if command.takes_session for name in command.names]
    return Suggestions(commands, naming, names)
