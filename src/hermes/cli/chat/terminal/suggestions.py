"""Completions in the chat: commands, session names and references to files."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from hermes.agent.references.suggest import suggest_references, typed_reference
from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.slash.registry import COMMANDS
from hermes.cli.chat.slash.sessions import recent_sessions
from hermes.cli.chat.terminal.prompt import Suggestions
from hermes.cli.display.terminal import printable
from hermes.errors import HermesError

MAX_NAMES = 500
KEPT_S = 5.0
"""How long the list of the project's files is used again."""
LIST_S = 0.5
"""How long listing them may take; a large project is completed from the part that was listed."""


def make_suggestions(chat: Chat) -> Suggestions:
    """Return the completions for a chat."""

    def names() -> Iterable[str]:
        rows = recent_sessions(chat, MAX_NAMES)
        for name in [*(row["title"] for row in rows), *(row["id"] for row in rows)]:
            if name and printable(name) == name:
                yield name

    commands = [f"/{name}" for command in COMMANDS for name in command.names]
    session_commands = [f"/{name}" for command in COMMANDS if command.takes_session for name in command.names]
    return Suggestions(commands, session_commands, names, ReferenceSuggestions(chat))


class ReferenceSuggestions:
    """Completes references to the files of the session's directory."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._listed: tuple[str, float, tuple[str, ...]] = ("", 0.0, ())
        """The directory, the time of the list and its files."""

    def typed(self, text: str) -> str:
        """Return the beginning of a reference at the end of a text; empty if there is none."""
        return typed_reference(text)

    def complete(self, typed: str) -> list[str]:
        """Return references that fit what was typed, the best first."""
        found = suggest_references(typed, self._files)
        return [each for each in found if printable(each) == each]

    def _files(self) -> tuple[str, ...]:
        """Return the files of the session's directory, listed at most every few seconds; none if that fails."""
        with suppress(HermesError, OSError):
            session = self._chat.conversation.session
            directory = session.tools.directory
            if directory is None:
                return ()
            root, now = str(directory.root), time.monotonic()
            if self._listed[0] != root or now - self._listed[1] > KEPT_S:
                from hermes.agent.models.model import Cancellation
                from hermes.agent.references.listing import list_project

                context = replace(session.tools.context(Cancellation()), approve=None)  # completion asks no question
                self._listed = root, time.monotonic(), list_project(context, seconds=LIST_S).paths
            return self._listed[2]
        return ()
