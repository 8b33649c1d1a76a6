"""The keys of the prompt."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.filters import emacs_mode, has_completions, has_selection, is_searching, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes.cli.chat.prompt.editor import edit_in_editor
from hermes.cli.chat.terminal.signals import LineDropped

_REQUESTED = CompleteEvent(completion_requested=True)


def is_typing_command(text: str) -> bool:
    """Whether a text is the beginning of a command's name, for which the menu opens by itself."""
    return text.startswith("/") and not any(each.isspace() for each in text)


def complete_input(buffer: Buffer) -> None:
    """Select the next entry of the menu; without a menu, complete what was typed, or open the menu."""
    if buffer.complete_state is not None:
        buffer.complete_next()
    elif is_typing_command(buffer.text):
        open_menu(buffer)
        buffer.complete_next()
    else:  # on a thread, because an endpoint may have to be asked
        buffer.start_completion(insert_common_part=True, complete_event=_REQUESTED)


def open_menu(buffer: Buffer) -> None:
    """Show the commands that fit the beginning of a name, or close the menu.

    The library does this on a thread, and would ignore a Tab that arrives before the thread is done.
    """
    buffer.complete_state = None
    if is_typing_command(buffer.text) and buffer.document.is_cursor_at_the_end:
        found = list(buffer.completer.get_completions(buffer.document, _REQUESTED))
        if found:
            buffer.complete_state = CompletionState(buffer.document, found)
    buffer.on_completions_changed.fire()


def prompt_keys(count_ctrl_c: Callable[[], None]) -> KeyBindings:
    """Return the keys of the chat's prompt; `count_ctrl_c` is called for each press of Ctrl-C."""
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

    @keys.add("tab")
    def _(event: KeyPressEvent) -> None:
        complete_input(event.current_buffer)

    @keys.add("backspace", filter=emacs_mode & ~has_selection)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(event.arg)
        open_menu(event.current_buffer)

    @keys.add("escape", filter=has_completions & emacs_mode)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("c-x", "c-e", filter=emacs_mode)
    @keys.add("v", filter=vi_navigation_mode)
    def _(event: KeyPressEvent) -> None:
        event.app.create_background_task(edit_in_editor(event.current_buffer))

    @keys.add("c-c", filter=~is_searching)  # a search in the history is aborted by Ctrl-C, and the prompt stays
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        count_ctrl_c()
        buffer = event.current_buffer
        if buffer.text:
            buffer.append_to_history()
            event.app.exit(exception=LineDropped, style="class:aborting")
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    @keys.add(Keys.Vt100MouseEvent)
    @keys.add(Keys.WindowsMouseEvent)
    @keys.add(Keys.CPRResponse)
    def _(_: KeyPressEvent) -> None:
        """Ignore reports of the terminal, which the chat never asks for: they were typed or pasted."""

    return keys
