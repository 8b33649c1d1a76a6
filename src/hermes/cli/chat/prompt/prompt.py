"""The input prompt, with several lines, history, a menu of commands and a status line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Always, is_done
from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.layout import (
    ConditionalContainer,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from hermes.cli.chat.keyboard.watch import take_typed
from hermes.cli.chat.prompt.command_menu import command_menu
from hermes.cli.chat.prompt.history import open_history, valid_input
from hermes.cli.chat.prompt.keys import open_menu, prompt_keys
from hermes.cli.chat.prompt.status_line import Status
from hermes.cli.chat.terminal.signals import ChatEnded, CtrlCPresses, Signals
from hermes.log import warn

MARK, FURTHER = "> ", ". "
_CTRL_C, _PASTE_END = "\x03", "\x1b[201~"
ESCAPE_S, SEQUENCE_S = 0.05, 0.25
"""How long Esc may be the beginning of an escape sequence, and of two keys such as Esc and Enter."""
STYLE = Style.from_dict({"status": "dim", "menu": "dim", "menu.selected": "bold"})


class Prompt:
    """Reads lines that the user types in the terminal."""

    def __init__(
        self,
        home: Path,
        completer: Completer,
        signals: Signals,
        *,
        status: Callable[[], Status] = Status,
        editing_mode: Literal["emacs", "vi"] = "emacs",
    ) -> None:
        self._signals = signals
        self._presses = CtrlCPresses()
        self._keys = 0
        """The number of keys pressed, without Ctrl-C."""
        self._status = status
        self._shown_status = Status()
        self._session: PromptSession[str] = PromptSession(
            history=open_history(home),
            completer=completer,
            complete_in_thread=True,
            complete_while_typing=False,
            editing_mode=EditingMode(editing_mode.upper()),
            key_bindings=prompt_keys(self._count_ctrl_c),
            multiline=True,
            prompt_continuation=FURTHER,
            enable_suspend=True,
            reserve_space_for_menu=0,
            output=_output(),
            style=STYLE,
            input_processors=[TabsProcessor(char1=" ", char2=" ")],
            cursor=ModalCursorShapeConfig() if editing_mode == "vi" else None,
        )
        self._session.default_buffer.on_text_insert += open_menu
        self._session.app.ttimeoutlen, self._session.app.timeoutlen = ESCAPE_S, SEQUENCE_S
        _let_ctrl_c_end_a_paste(self._session.app.input)
        self._session.app.layout = self._layout(self._session.layout)
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

        self._shown_status = self._status()
        store_typeahead(app.input, _key_presses(app.input, take_typed()))
        try:
            with self._signals.on_leave(leave):
                text = self._session.prompt(
                    FormattedText([("bold", MARK)]),
                    default=draft,
                    set_exception_handler=False,
                    pre_run=lambda: asyncio.get_running_loop().set_exception_handler(_note_failure),
                )
        except KeyboardInterrupt:
            if self._presses.is_second(time.monotonic(), self._keys):
                raise EOFError from None
            raise
        return valid_input(text)

    def _count_key(self, _: object) -> None:
        self._keys += 1

    def _count_ctrl_c(self) -> None:
        self._keys -= 1  # `_count_key` has counted this key

    def _layout(self, layout: Layout) -> Layout:
        """Return the layout of a prompt with the menu and the status line below the input."""
        for each in layout.walk():  # the menu of the library floats over the lines below, of which there are none
            if isinstance(each, FloatContainer):
                each.floats = [part for part in each.floats if not _is_menu(part)]
        status = ConditionalContainer(
            Window(FormattedTextControl(self._status_fragments), dont_extend_height=True, height=1),
            filter=~is_done,
        )
        # The rows that a larger menu has left are below the status line, not between the input and the menu.
        layout.current_window.dont_extend_height = Always()
        parts = [layout.container, command_menu(), status, Window()]
        return Layout(HSplit(parts), layout.current_window)

    def _status_fragments(self) -> StyleAndTextTuples:
        columns = self._session.app.output.get_size().columns
        return [("class:status", self._shown_status.fit(columns - 1))]


def _let_ctrl_c_end_a_paste(source: Input) -> None:
    """Let Ctrl-C end pasted text whose end never came; otherwise it would swallow all further keys."""
    parser = getattr(source, "vt100_parser", None)
    if not isinstance(parser, Vt100Parser):  # on Windows
        return
    feed = parser.feed

    def feed_or_end(data: str) -> None:
        feed(f"{_PASTE_END}{data}" if data == _CTRL_C and parser._in_bracketed_paste else data)

    parser.feed = feed_or_end  # type: ignore[method-assign]


def _is_menu(part: Float) -> bool:
    return part.xcursor and part.ycursor


def _note_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Note a failure of the library in the log: the user sees no traceback, and the prompt continues."""
    warn(__name__, "the prompt failed: %s", context.get("exception") or context.get("message"))


def _key_presses(source: Input, typed: bytes) -> list[KeyPress]:
    """Return the keys that were pressed while no prompt was shown.

    The beginning of a paste stays in the parser of the input, which gets the rest.
    """
    presses: list[KeyPress] = []
    parser = getattr(source, "vt100_parser", None)
    if not isinstance(parser, Vt100Parser):  # on Windows
        parser = Vt100Parser(presses.append)
    before, parser.feed_key_callback = parser.feed_key_callback, presses.append
    try:
        parser.feed(typed.decode("utf-8", "surrogateescape"))
        parser.flush()
    finally:
        parser.feed_key_callback = before
    return presses


def _output() -> Output:
    """Return the terminal output without cursor requests, whose replies could arrive late and end up in the shell."""
    output = create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output
