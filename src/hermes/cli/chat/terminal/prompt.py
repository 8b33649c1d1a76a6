"""The input prompt, with several lines, history and completion."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from hermes.cli.chat.terminal.signals import ChatEnded, CtrlCPresses, LineDropped, Signals
from hermes.home import create_private_file, ensure_private_dir, write_private_atomic
from hermes.log import warn

HISTORY = "chat_history"
MAX_HISTORY_BYTES = 512 * 1024
MARK, FURTHER = "> ", ". "


class Prompt:
    """Reads lines that the user types in the terminal."""

    def __init__(self, home: Path, completer: Completer, signals: Signals) -> None:
        self._signals = signals
        self._presses = CtrlCPresses()
        self._keys = 0
        """The number of keys pressed, without Ctrl-C."""
        self._session: PromptSession[str] = PromptSession(
            history=_history(home),
            completer=completer,
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=self._bindings(),
            multiline=True,
            prompt_continuation=FURTHER,
            enable_suspend=True,
            reserve_space_for_menu=0,
            output=_output(),
        )
        self._session.app.key_processor.before_key_press += self._count_key

    def read(self, draft: str = "") -> str:
        """Return the typed text; raise EOFError after Ctrl-D or a second Ctrl-C, KeyboardInterrupt after the first.

        Raise `LineDropped` after Ctrl-C on a line with text, and `ChatEnded` after a signal. In both cases the text
        typed so far is in the history.
        """
        app = self._session.app

        def exit_app() -> None:
            self._session.default_buffer.append_to_history()
            app.exit(exception=ChatEnded)

        def leave() -> None:
            if app.loop is not None and app.is_running:
                app.loop.call_soon_threadsafe(exit_app)
            else:
                raise ChatEnded

        try:
            with self._signals.on_leave(leave):
                return self._session.prompt(FormattedText([("bold", MARK)]), default=draft)
        except KeyboardInterrupt:
            if self._presses.is_second(time.monotonic(), self._keys):
                raise EOFError from None
            raise

    def _count_key(self, _: object) -> None:
        self._keys += 1

    def _bindings(self) -> KeyBindings:
        keys = _keys()

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            self._keys -= 1  # `_count_key` has counted this key
            buffer = event.current_buffer
            if buffer.text:
                buffer.append_to_history()
                event.app.exit(exception=LineDropped, style="class:aborting")
            else:
                event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

        return keys


class ReferenceCompleter(Protocol):
    """Completes references such as `@file:`."""

    def typed(self, text: str) -> str:
        """Return the beginning of a reference at the end of a text; empty if there is none."""
        ...

    def complete(self, typed: str) -> list[str]:
        """Return references that fit what was typed, the best first."""
        ...


class Suggestions(Completer):
    """Completes the names of commands, the session names that some commands take, and references."""

    def __init__(
        self,
        commands: Sequence[str],
        session_commands: Sequence[str],
        sessions: Callable[[], Iterable[str]],
        references: ReferenceCompleter | None = None,
    ) -> None:
        self._commands = commands
        self._session_commands = session_commands
        self._sessions = sessions
        self._references = references

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield completions for the text before the cursor."""
        text = document.text_before_cursor
        command, blank, name = text.partition(" ")
        if not text.startswith("/") or "\n" in text:
            if self._references is not None and (typed := self._references.typed(text)):
                yield from (_completion(each, typed) for each in self._references.complete(typed))
            return
        if not blank:
            yield from (_completion(each, text) for each in self._commands if each.startswith(text))
        elif command in self._session_commands:
            name = name.lstrip()
            folded = name.casefold()
            yield from (_completion(each, name) for each in self._sessions() if each.casefold().startswith(folded))


def _output() -> Output:
    """Return the terminal output without cursor requests, whose replies could arrive late and end up in the shell."""
    output = create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output


def _completion(word: str, typed: str) -> Completion:
    return Completion(word, start_position=-len(typed))


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class PrivateHistory(FileHistory):
    """The history of earlier input, in a file that only its owner can read.

    If the file cannot be read or written, earlier history is missing, but current input is never lost.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(str(path))

    def load_history_strings(self) -> Iterable[str]:
        """Return the entries of the file, newest first; none if it cannot be read."""
        try:
            return list(super().load_history_strings()) if self._is_plain() else []
        except OSError as error:
            warn(__name__, "%s cannot be read: %s", self._path, error.strerror)
            return []

    def store_string(self, string: str) -> None:
        """Append an entry to the file, if it is writable."""
        try:
            create_private_file(self._path)
            if self._is_plain():
                super().store_string(string)
        except OSError as error:
            warn(__name__, "%s cannot be written: %s", self._path, error.strerror)

    def shorten(self) -> None:
        """Delete older entries of a file larger than `MAX_HISTORY_BYTES`."""
        try:
            if not self._is_plain() or self._path.stat().st_size <= MAX_HISTORY_BYTES:
                return
            data = self._path.read_bytes()
            cut = data.find(b"\n# ", len(data) - MAX_HISTORY_BYTES // 2)
            write_private_atomic(self._path, data[cut:] if cut >= 0 else b"")
        except OSError as error:
            warn(__name__, "%s cannot be shortened: %s", self._path, error.strerror)

    def _is_plain(self) -> bool:
        """Whether the path is a regular file; reading a pipe or a device might never end."""
        return self._path.is_file()


def _history(home: Path) -> PrivateHistory:
    ensure_private_dir(home)
    history = PrivateHistory(home / HISTORY)
    history.shorten()
    return history
