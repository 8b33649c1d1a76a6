"""The prompt: a line, or several, with history and completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from hermes.cli.chat.signals import Left, Signals
from hermes.home import create_private_file, ensure_private_dir, write_private_atomic

HISTORY = "chat_history"
MAX_HISTORY_BYTES = 512 * 1024
MARK, FURTHER = "> ", ". "


class Prompt:
    """Reads what a person types in the terminal."""

    def __init__(self, home: Path, completer: Completer, signals: Signals) -> None:
        self._signals = signals
        self._session: PromptSession[str] = PromptSession(
            history=_history(home),
            completer=completer,
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation=FURTHER,
            enable_suspend=True,
            reserve_space_for_menu=0,
            output=_output(),
        )

    def read(self, draft: str = "") -> str:
        """What is typed; raises EOFError after Ctrl-D, KeyboardInterrupt after Ctrl-C, and `Left` after a signal."""
        app = self._session.app

        def leave() -> None:
            if app.loop is not None and app.is_running:
                app.loop.call_soon_threadsafe(lambda: app.exit(exception=Left))
            else:
                raise Left

        with self._signals.leaving_by(leave):
            return self._session.prompt(FormattedText([("bold", MARK)]), default=draft)


class Suggestions(Completer):
    """Completes the names of commands, and behind those that take one, of sessions."""

    def __init__(self, commands: Sequence[str], naming: Sequence[str], sessions: Callable[[], Iterable[str]]) -> None:
        self._commands = commands
        self._naming = naming
        self._sessions = sessions

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What the text before the cursor may become."""
        text = document.text_before_cursor
        command, blank, name = text.partition(" ")
        if not text.startswith("/") or "\n" in text:
            return
        if not blank:
            yield from (_completion(each, text) for each in self._commands if each.startswith(text))
        elif command in self._naming:
            name = name.lstrip()
            folded = name.casefold()
            yield from (_completion(each, name) for each in self._sessions() if each.casefold().startswith(folded))


def _output() -> Output:
    """The terminal, which is not asked where its cursor is: its answer could come too late and end up in the shell."""
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


def _history(home: Path) -> FileHistory:
    """What was typed before, in a file that only its owner can read; the older half goes when it has grown long."""
    ensure_private_dir(home)
    path = home / HISTORY
    if not create_private_file(path) and path.stat().st_size > MAX_HISTORY_BYTES:
        data = path.read_bytes()
        cut = data.find(b"\n# ", len(data) - MAX_HISTORY_BYTES // 2)
        write_private_atomic(path, data[cut:] if cut >= 0 else b"")
    return FileHistory(str(path))
