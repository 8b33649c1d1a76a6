"""Completions in the chat: commands, names of sessions and models, and references to files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes.agent.references.suggest import suggest_references, typed_reference
from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.prompt.command_menu import match_words
from hermes.cli.chat.slash.registry import COMMANDS, Argument
from hermes.cli.chat.slash.sessions import recent_sessions
from hermes.cli.display.terminal import printable
from hermes.errors import HermesError

MAX_NAMES = 500
KEPT_S = 5.0
"""How long the list of the project's files is used again."""
LIST_S = 0.5
"""How long listing them may take; a large project is completed from the part that was listed."""


class ReferenceCompleter(Protocol):
    """Completes references such as `@file:`."""

    def typed(self, text: str) -> str:
        """Return the beginning of a reference at the end of a text; empty if there is none."""
        ...

    def complete(self, typed: str) -> list[str]:
        """Return references that fit what was typed, the best first."""
        ...


class Suggestions(Completer):
    """Completes the names of commands while they are typed, and other names when the user presses Tab."""

    def __init__(
        self,
        commands: Mapping[str, str],
        names: Mapping[str, Callable[[], Iterable[str]]],
        references: ReferenceCompleter | None = None,
    ) -> None:
        self._commands = commands
        """The commands, each with what it does."""
        self._names = names
        """The names that some commands take."""
        self._references = references

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield completions for the text before the cursor."""
        text = document.text_before_cursor
        command, blank, name = text.partition(" ")
        is_command = text.startswith("/") and "\n" not in text
        if is_command and not blank:
            yield from (
                Completion(each, start_position=-len(text), display_meta=self._commands[each])
                for each in match_words(text, self._commands)
            )
        elif not complete_event.completion_requested:
            return
        elif is_command:
            name = name.lstrip()
            listed = self._names[command]() if command in self._names else ()
            yield from (Completion(each, start_position=-len(name)) for each in match_words(name, listed))
        elif self._references is not None and (typed := self._references.typed(text)):
            found = self._references.complete(typed)
            yield from (Completion(each, start_position=-len(typed)) for each in found)


def make_suggestions(chat: Chat) -> Suggestions:
    """Return the completions for a chat."""

    def session_names() -> Iterable[str]:
        rows = recent_sessions(chat, MAX_NAMES)
        return [*(row["title"] or "" for row in rows), *(str(row["id"]) for row in rows)]

    sources: dict[Argument, Callable[[], Iterable[str]]] = {
        Argument.SESSION: session_names,
        Argument.MODEL: lambda: chat.model_names.names(chat.conversation.model) or (),
    }
    commands = {f"/{name}": command.summary for command in COMMANDS for name in command.names}
    names = {
        f"/{name}": _shown_only(sources[command.completes])
        for command in COMMANDS
        if command.completes in sources
        for name in command.names
    }
    return Suggestions(commands, names, ReferenceSuggestions(chat))


def _shown_only(names: Callable[[], Iterable[str]]) -> Callable[[], list[str]]:
    """Return the names that can be shown as they are, or none if they cannot be read."""

    def listed() -> list[str]:
        with suppress(HermesError):
            return [each for each in names() if each and printable(each) == each]
        return []

    return listed


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
