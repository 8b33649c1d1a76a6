"""Asking the user during a turn whether a tool may act."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from hermes.agent.safety.approval import ApprovalRequest, ConversationOrigin, Decision
from hermes.agent.safety.visible_text import fold_blanks
from hermes.agent.skills.session_skills import SecretRequest
from hermes.cli.chat.terminal.keyboard import fresh_input, hidden_input
from hermes.cli.chat.terminal.output import write_notice
from hermes.cli.chat.terminal.screen import Screen
from hermes.cli.chat.terminal.signals import Signals
from hermes.cli.chat.terminal.stdin_lines import read_chunk
from hermes.cli.chat.terminal.style import bold
from hermes.cli.display.terminal import clip, display_width, graphemes, printable, printable_lines

QUESTION = "Allow it? [y]es, for this [s]ession, [a]lways, [N]o: "
MORE = "-- {shown} of {count} rows; Enter for more, [n]o to deny: "
ANSWERS = {
    "y": Decision.ONCE,
    "yes": Decision.ONCE,
    "o": Decision.ONCE,
    "once": Decision.ONCE,
    "s": Decision.SESSION,
    "session": Decision.SESSION,
    "a": Decision.ALWAYS,
    "always": Decision.ALWAYS,
    "": Decision.DENY,
    "n": Decision.DENY,
    "no": Decision.DENY,
}

_INDENT = "  "
_COLUMNS, _LINES = 80, 24
"""The size of a terminal that does not report it."""
_MIN_COLUMNS, _MIN_ROWS = 8, 4
_NOTE_ROWS = 3
_QUESTION_ROWS = 2 * _NOTE_ROWS + 4
"""Rows reserved for the notes and the question."""


@dataclass(frozen=True, slots=True)
class ApprovalPrompt:
    """Asks on the terminal. Anything but a clear yes is a no."""

    screen: Screen
    signals: Signals

    def __call__(self, request: ApprovalRequest) -> Decision:
        """Show the request and return the user's decision. Ctrl-C denies it and ends the turn."""
        width, height = _terminal_size()
        rows = _split_rows(fold_blanks(request.detail), max(_MIN_COLUMNS, width - len(_INDENT) - 1))
        self.screen.print_lines([bold(clip(printable(request.summary), width - 1))])
        try:
            with self.signals.interruptible():
                with fresh_input():
                    if not self._show_pages(rows, max(_MIN_ROWS, height - _QUESTION_ROWS)):
                        return Decision.DENY
                self.screen.print_lines(_question_notes(request, width))
                with fresh_input():  # input typed while paging does not answer the question
                    return _read_decision()
        except KeyboardInterrupt:
            self.signals.stop_turn()
            self.screen.print_text()
            return Decision.DENY

    def _show_pages(self, rows: list[str], page: int) -> bool:
        """Show the rows page by page; return False if the user denies the request before the end."""
        for start in range(0, len(rows), page):
            self.screen.print_lines([f"{_INDENT}{row}" for row in rows[start : start + page]])
            if start + page < len(rows):
                write_notice(MORE.format(shown=start + page, count=len(rows)))
                line = _read_line()
                # A yes does not count before the user has seen all rows.
                if not line or _decode_answer(line) in ("n", "no"):
                    return False
        return True

    def ask_operator(self, request: ApprovalRequest, origin: ConversationOrigin) -> Decision:
        """Ask the user at the terminal, who resumed a conversation of a chat platform here."""
        whose = f"This conversation belongs to {origin.source}: [a] also allows it for its users, without asking you."
        return self(replace(request, note=" ".join(filter(None, [request.note, whose]))))

    def ask_secret(self, request: SecretRequest) -> str | None:
        """Ask for a value that is not shown while it is typed; return None if the user gives none."""
        width, _ = _terminal_size()
        lines = _split_rows(printable(f"{request.name} is not set."), width - 1)
        lines += _split_rows(printable(request.help), width - 1)[:_NOTE_ROWS] if request.help else []
        self.screen.print_lines(lines)
        try:
            with self.signals.interruptible(), hidden_input():
                write_notice(f"{printable(request.question)} (not shown; Enter for none): ")
                value = read_chunk()
        except KeyboardInterrupt:
            self.signals.stop_turn()
            value = b""
        self.screen.print_text()
        try:
            return value.decode().strip() or None
        except UnicodeDecodeError:
            return None


def _read_decision() -> Decision:
    while True:
        write_notice(QUESTION)
        decision = ANSWERS.get(_decode_answer(_read_line()))
        if decision is not None:
            return decision


def _read_line() -> bytes:
    """Return what the user types; after Ctrl-D, which is no answer, the next text begins on a new line."""
    line = read_chunk()
    if not line:
        write_notice("\n")
    return line


def _decode_answer(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip().lower()


def _terminal_size() -> tuple[int, int]:
    """Return the columns and lines of the terminal on stderr."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return _COLUMNS, _LINES
    return size.columns or _COLUMNS, size.lines or _LINES


def _split_rows(text: str, width: int) -> list[str]:
    """Split a text into the rows that it takes on the screen."""
    rows: list[str] = []
    for line in printable_lines(text).split("\n"):
        row, columns = "", 0
        for each in graphemes(line):
            taken = display_width(each)
            if row and columns + taken > width:
                rows.append(row)
                row, columns = "", 0
            row, columns = row + each, columns + taken
        rows.append(row)
    return rows


def _question_notes(request: ApprovalRequest, width: int) -> list[str]:
    """Return the notes directly above the question, which stay visible; the last one repeats the request."""
    count = request.subject.count("\n") + 1
    size = "1 line" if count == 1 else f"{count} lines"
    size = f" ({size}, {request.risk} risk)"
    columns = width - 1
    notes = _split_rows(f"Note: {request.note}", columns)[:_NOTE_ROWS] if request.note else []
    permit = _split_rows(printable(_describe_permit(request)), columns)
    permit = permit if len(permit) <= _NOTE_ROWS else [*permit[: _NOTE_ROWS - 1], clip("...", columns)]
    summary = clip(printable(request.summary), max(_MIN_COLUMNS, columns - len(size)))
    return [*notes, *permit, bold(f"{summary}{size}")]


def _describe_permit(request: ApprovalRequest) -> str:
    """Return what the longer permissions would allow; a request may be limited to shorter ones."""
    match request.longest_scope:
        case Decision.ONCE:
            return "[s] and [a] would allow it only this time, like [y]."
        case Decision.SESSION:
            return f"[s] and [a] would allow {request.permit}, for this session only."
        case _:
            return f"[s] and [a] would allow {request.permit}."
