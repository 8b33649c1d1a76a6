"""The output of the chat: answers go to stdout, everything else to stderr, and no finished text is ever cleared."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from threading import Thread
from typing import TYPE_CHECKING

from hermes.agent.listener import Listener
from hermes.agent.models.model import ToolCall
from hermes.agent.tools.results import ToolResult
from hermes.cli.chat.terminal.folded_thoughts import FoldedThoughts
from hermes.cli.chat.terminal.live_answer import LiveAnswer
from hermes.cli.chat.terminal.output import write_answer, write_notice
from hermes.cli.chat.terminal.spinner import Spinner
from hermes.cli.chat.terminal.style import (
    GREEN,
    bold,
    can_move,
    colour_text,
    dim,
    failed,
    has_style,
    is_terminal,
    succeeded,
)
from hermes.cli.chat.tool_display.calls import CallEnd, describe_call, describe_end, output_of
from hermes.cli.chat.tool_display.outputs import FoldedOutputs
from hermes.cli.display.streamed_text import StreamedText
from hermes.cli.display.terminal import (
    WIDTH_WHEN_PIPED,
    clip,
    display_width,
    notice_width,
    printable,
    terminal_width,
)
from hermes.cli.display.wrapping import LEAST_TEXT, wrap_line
from hermes.errors import HermesError
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.agent.safety.diffs import FileDiff

ANSWER = "◆ "
MAX_CHANGE_ROWS = 20
"""How many rows of a change are shown; `/output` shows the rest."""
MAX_TITLE = 200
"""How many columns of a call are kept with its output."""
_LEAST_WIDTH = 8


class Screen(Listener):
    """Shows a turn as it happens."""

    def __init__(self, *, is_quiet: bool = False, is_conversation: bool = False) -> None:
        self.outputs = FoldedOutputs()
        """The outputs of tools in this chat."""
        self._is_quiet = is_quiet
        """Whether to print only the answer, in one piece."""
        self._is_conversation = is_conversation
        """Whether the user types between the answers."""
        self._is_plain = not is_terminal(sys.stdout)
        self._spinner = Spinner()
        self._is_in_answer = False
        self._is_mark_due = True
        """Whether the next text begins an answer, or follows a tool."""
        self._is_line_open = False
        self._flow = StreamedText(terminal_width())
        self._can_redraw = can_move(sys.stdout)
        self._live: LiveAnswer | None = None
        """The answer that is being drawn, on a terminal that can draw over its text."""
        self._thoughts = FoldedThoughts()
        self._tool = ""
        """The tool that is running."""
        self._tool_began = 0.0
        self._was_asked = False
        """Whether the user has been asked about the running tool."""

    def begin(self) -> None:
        """Show that a turn has started."""
        self._thoughts, self._is_mark_due = FoldedThoughts(), True
        self._wait("thinking")
        if self._can_redraw and not self._is_quiet:  # while the model thinks, what draws its answer is imported
            Thread(target=_import_renderer, name="hermes-import", daemon=True).start()

    def end(self) -> None:
        """Finish the output of a turn."""
        self._spinner.hide()
        if not self._is_plain and not self._is_quiet:
            was_thinking = self._thoughts.is_thinking
            if held := self._thoughts.finish():
                self._write_text(held)
            if was_thinking and not self._is_in_answer:
                self.print_dim("The answer ended in the middle of the model's thoughts.")
        self._close_line()
        if self._is_in_answer and self._is_conversation:
            write_notice("\n")
        self._is_in_answer = False

    def print_answer(self, answer: str) -> None:
        """Write the whole answer, if its pieces were not written."""
        if self._is_quiet and answer:
            write_answer(f"{self._safe(answer)}\n")

    def text(self, piece: str) -> None:
        """Write the next piece of the answer.

        On a terminal, control characters are escaped, thoughts are left out, and Markdown is drawn.
        """
        piece = self._safe(piece)
        if not self._is_plain and not self._is_quiet:
            piece = self._thoughts.add(piece)
        self._write_text(piece)

    def _write_text(self, piece: str) -> None:
        if not self._is_in_answer:
            piece = piece.lstrip("\n")
        if not piece or self._is_quiet:
            return
        self._spinner.hide()
        mark = ANSWER if self._is_conversation and self._is_mark_due else ""
        is_first, self._is_mark_due = self._is_mark_due, False
        if self._can_redraw:
            if self._live is None:
                self._live = LiveAnswer(mark)
            self._is_in_answer = self._is_line_open = True
            self._live.add(piece)
            return
        if mark:
            write_answer(colour_text(ANSWER, GREEN, sys.stdout))
        if is_first:
            self._flow = StreamedText(terminal_width(), column=display_width(mark))
        self._is_in_answer = True
        self._is_line_open = not piece.endswith("\n")
        write_answer(piece if self._is_plain else self._flow.add(piece))

    def tool_started(self, call: ToolCall) -> None:
        """Show the tool and its arguments on one line."""
        if self._is_quiet:
            return
        self.print_dim(clip(printable(f"→ {describe_call(call)}"), max(_LEAST_WIDTH, terminal_width() - 1)))
        self._tool, self._tool_began, self._was_asked = call.name, time.monotonic(), False
        self._wait(call.name)

    def tool_output(self, tail: str) -> None:
        """Show the end of the output of a command that runs."""
        self._spinner.show_output(tail)

    def tool_asked(self) -> None:
        """Count from here how long the running tool takes: until now the user has thought about a question."""
        self._tool_began, self._was_asked = time.monotonic(), True
        self._wait(self._tool or "thinking")

    def tool_finished(self, call: ToolCall, result: ToolResult) -> None:
        """Show how the tool ended; its output is folded."""
        end = describe_end(result, time.monotonic() - self._tool_began)
        text = output_of(result) if result.diff is None else result.diff.text
        number = self.outputs.add(clip(printable(describe_call(call)), MAX_TITLE), text)
        if result.diff is not None and not self._was_asked and not self._is_quiet:
            self._print_change(result.diff, number)
        if not self._is_quiet and end.text:
            is_folded = bool(output_of(result)) and result.diff is None and not _says_all(end, result)
            self._print_end(end, number if is_folded else None)
        self._tool, self._is_mark_due = "", True
        self._wait("thinking")

    def _print_change(self, diff: FileDiff, number: int) -> None:
        """Show how a file has changed; a question before the change has shown that already."""
        from hermes.cli.display.diff_rows import diff_rows

        width = max(_LEAST_WIDTH, (notice_width() or WIDTH_WHEN_PIPED) - 3)
        rows = diff_rows(diff, width, has_colour=has_style(sys.stderr))
        more = len(rows) - MAX_CHANGE_ROWS
        self.print_lines([f"  {row}" for row in rows[:MAX_CHANGE_ROWS]])
        if more > 0:
            where = f": /output {number}" if self._is_conversation else ""
            self.print_dim(f"  … {plural(more, 'more row')}{where}")

    def _print_end(self, end: CallEnd, number: int | None) -> None:
        width = max(_LEAST_WIDTH, (notice_width() or WIDTH_WHEN_PIPED) - 1)
        self.print_lines([dim(clip(f"  {printable(line.expandtabs(4))}", width)) for line in end.lines])
        mark, style = ("✗", failed) if end.is_failure else ("✓", succeeded)
        where = f": /output {number}" if number is not None and self._is_conversation else ""
        rows = wrap_line(f"  {mark} {printable(end.text)}{where}", width, margin=4)
        self.print_lines([style(row) for row in rows])

    def retrying(self, seconds: float, why: str) -> None:
        """Show why the model does not respond and when the next attempt starts."""
        self.print_dim(f"{why}; retrying {'now' if seconds < 0.5 else f'in {seconds:.0f} s'}")
        self._wait("waiting")

    def notice(self, text: str) -> None:
        """Show a notice to the user."""
        self.print_text(f"Note: {text}")
        self._wait("thinking")

    def print_text(self, text: str = "", *, in_bold: str = "") -> None:
        """Write text to stderr, broken between words, with control characters escaped, and one word of it bold."""
        rows = [row for line in text.split("\n") for row in self._wrap(printable(line))]
        place = next((place for place, row in enumerate(rows) if in_bold and in_bold in row), None)
        if place is not None:
            rows[place] = rows[place].replace(in_bold, bold(in_bold), 1)
        self.print_lines(rows)

    def print_columns(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Write names and what they mean: next to each other, or on a narrow terminal below each other."""
        margin = max(len(name) for name, _ in pairs) + 4
        is_narrow = 0 < notice_width() < margin + LEAST_TEXT
        rows: list[str] = []
        for name, meaning in pairs:
            if is_narrow:
                rows += [*self._wrap(f"  {name}"), *self._wrap(f"      {meaning}")]
            else:
                rows += self._wrap(f"  {name:<{margin - 2}}{meaning}", margin)
        self.print_lines(rows)

    def print_dim(self, text: str) -> None:
        """Write dim text to stderr; nothing if it is empty."""
        if text:
            self.print_lines([dim(row) for row in self._wrap(printable(text))])

    def print_status(self, text: str) -> None:
        """Write a dim line about the turn, unless only answers are wanted."""
        if not self._is_quiet:
            self.print_dim(text)

    def print_lines(self, lines: list[str]) -> None:
        """Write lines that are already printable and may contain colours."""
        self.pause()
        for line in lines:
            write_notice(f"{line}\n")

    def print_error(self, error: HermesError, hint: str | None = None) -> None:
        """Write an error and its hint."""
        self.print_text(f"Error: {error.message}")
        if hint or error.hint:
            self.print_text(f"Hint: {hint or error.hint}")

    def pause(self) -> None:
        """Hide the spinner and close the open line, so that other text can follow."""
        self._spinner.hide()
        self._close_line()

    def _safe(self, piece: str) -> str:
        """Escape control characters, except newlines and tabs, if stdout is a terminal."""
        if self._is_plain or piece.isprintable():
            return piece
        lines = piece.replace("\r\n", "\n").split("\n")
        return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)

    def _wrap(self, line: str, margin: int | None = None) -> list[str]:
        width = notice_width()
        return [line] if not width or self._is_quiet else wrap_line(line, width, margin=margin)

    def _wait(self, label: str) -> None:
        if not self._is_line_open and not self._is_quiet:
            self._spinner.show(label)

    def _close_line(self) -> None:
        if self._live is not None:
            self._live.finish()
            self._live, self._is_line_open = None, False
        if self._is_line_open:
            write_answer("\n" if self._is_plain else self._flow.add("\n"))
            self._is_line_open = False


def _says_all(end: CallEnd, result: ToolResult) -> bool:
    """Whether the line about the end of a call has everything that is in its output."""
    return end.is_failure and end.text == " ".join(output_of(result).split())


def _import_renderer() -> None:
    from importlib import import_module

    import_module("hermes.cli.display.markdown.renderer")
