"""The output of the chat: answers go to stdout, everything else to stderr, and no written text is ever cleared."""

from __future__ import annotations

import json
import sys

from hermes.agent.listener import Listener
from hermes.agent.models.model import ToolCall
from hermes.agent.tools.results import ToolResult
from hermes.cli.chat.terminal.folded_thoughts import FoldedThoughts
from hermes.cli.chat.terminal.live_answer import LiveAnswer
from hermes.cli.chat.terminal.output import write_answer, write_notice
from hermes.cli.chat.terminal.spinner import Spinner
from hermes.cli.chat.terminal.style import GREEN, can_move, colour_text, dim, is_terminal
from hermes.cli.display.streamed_text import StreamedText
from hermes.cli.display.terminal import clip, display_width, printable, terminal_width
from hermes.errors import HermesError

ANSWER = "◆ "
MAX_ERROR = 200


class Screen(Listener):
    """Shows a turn as it happens."""

    def __init__(self, *, is_quiet: bool = False, is_conversation: bool = False) -> None:
        self._is_quiet = is_quiet
        """Whether to print only the answer, in one piece."""
        self._is_conversation = is_conversation
        """Whether the user types between the answers."""
        self._is_plain = not is_terminal(sys.stdout)
        self._spinner = Spinner()
        self._is_in_answer = False
        self._is_line_open = False
        self._flow = StreamedText(terminal_width())
        self._can_redraw = can_move(sys.stdout)
        self._live: LiveAnswer | None = None
        """The answer that is being drawn, on a terminal that can draw over its text."""
        self._thoughts = FoldedThoughts()

    def begin(self) -> None:
        """Show that a turn has started."""
        self._thoughts = FoldedThoughts()
        self._wait("thinking")

    def end(self) -> None:
        """Finish the output of a turn."""
        self._spinner.hide()
        if not self._is_plain and not self._is_quiet and (held := self._thoughts.finish()):
            self._write_text(held)
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
        if self._can_redraw:
            if self._live is None:
                self._live = LiveAnswer(ANSWER if self._is_conversation and not self._is_in_answer else "")
            self._is_in_answer = self._is_line_open = True
            self._live.add(piece)
            return
        if not self._is_in_answer and self._is_conversation:
            write_answer(colour_text(ANSWER, GREEN, sys.stdout))
        if not self._is_in_answer:
            self._flow = StreamedText(terminal_width(), column=display_width(ANSWER) if self._is_conversation else 0)
        self._is_in_answer = True
        self._is_line_open = not piece.endswith("\n")
        write_answer(piece if self._is_plain else self._flow.add(piece))

    def tool_started(self, call: ToolCall) -> None:
        """Show the tool and its arguments on one line."""
        if self._is_quiet:
            return
        self.print_dim(clip(printable(f"→ {call.name} {call.arguments}".rstrip()), max(8, terminal_width() - 1)))
        self._wait(call.name)

    def tool_finished(self, call: ToolCall, result: ToolResult) -> None:
        """Show the error of a failed tool."""
        if result.is_error and not self._is_quiet:
            self.print_dim(clip(f"  {printable(_reason(result.text)[:MAX_ERROR])}", max(8, terminal_width() - 1)))
        self._wait("thinking")

    def retrying(self, seconds: float, why: str) -> None:
        """Show why the model does not respond and when the next attempt starts."""
        self.print_dim(f"{why}; retrying in {seconds:.0f} s")
        self._wait("waiting")

    def notice(self, text: str) -> None:
        """Show a notice to the user."""
        self.print_text(f"Note: {text}")
        self._wait("thinking")

    def print_text(self, text: str = "") -> None:
        """Write text to stderr, with control characters escaped."""
        self.print_lines([printable(line) for line in text.split("\n")])

    def print_dim(self, text: str) -> None:
        """Write a dim line to stderr; nothing if it is empty."""
        if text:
            self.print_lines([dim(printable(text))])

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


def _reason(result: str) -> str:
    """Return the error of a failed tool from the result that the model gets."""
    try:
        value = json.loads(result)
    except ValueError:
        return result
    return str(value["error"]) if isinstance(value, dict) and "error" in value else result
