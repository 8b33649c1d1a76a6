"""Asking the user during a turn whether a tool may act."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from hermes.agent.safety.approval import Answer, ApprovalRequest, ConversationOrigin, Decision
from hermes.agent.skills.session_skills import SecretRequest
from hermes.cli.chat.approval.keys import END, ESCAPE, read_key, single_keys, wait_for_silence
from hermes.cli.chat.approval.layout import Choice, choice_rows, choices_for, heading, request_rows, split_rows
from hermes.cli.chat.keyboard.modes import on_resume
from hermes.cli.chat.keyboard.stdin_lines import read_chunk
from hermes.cli.chat.keyboard.watch import fresh_input, hidden_input
from hermes.cli.chat.terminal.output import write_notice
from hermes.cli.chat.terminal.screen import Screen
from hermes.cli.chat.terminal.signals import Signals
from hermes.cli.display.terminal import printable

QUESTION = "Allow it? {keys}: "
MORE = "-- {shown} of {count} rows; Enter for more, [n]o to deny: "
INSTEAD = "What should Hermes do instead? "

_COLUMNS, _LINES = 80, 24
"""The size of a terminal that does not report it."""
_MIN_ROWS = 4
_HELP_ROWS = 3


@dataclass(frozen=True, slots=True)
class ApprovalPrompt:
    """Asks on the terminal. Only a key that means yes is a yes."""

    screen: Screen
    signals: Signals

    def __call__(self, request: ApprovalRequest) -> Answer:
        """Show the request and return the user's answer. Ctrl-C denies it and ends the turn."""
        width, height = _terminal_size()
        choices, rows = choices_for(request), request_rows(request, width)
        notes = choice_rows(request, choices, width, is_paged=False)
        is_paged = len(rows) + len(notes) + 2 > height
        if is_paged:
            notes = choice_rows(request, choices, width, is_paged=True)
        self.screen.print_lines([heading(request, width)])
        try:
            with self.signals.interruptible():
                with single_keys():
                    if not self._show_pages(rows, height - len(notes) - 2):
                        return Answer(Decision.DENY)
                    self.screen.print_lines(notes)
                    answer = _read_answer(choices)
                return answer or _read_instead()
        except KeyboardInterrupt:
            self.signals.stop_turn()
            self.screen.print_text()
            return Answer(Decision.DENY)
        finally:
            self.screen.tool_asked()

    def _show_pages(self, rows: list[str], space: int) -> bool:
        """Show the rows page by page; return False if the user denies the request before the end.

        No yes counts before all rows were on the screen.
        """
        page = max(_MIN_ROWS, space)
        for start in range(0, len(rows), page):
            shown = rows[start : start + page]
            self.screen.print_lines(shown)
            if start + page < len(rows) or len(shown) > space:
                write_notice(MORE.format(shown=start + len(shown), count=len(rows)))
                key = read_key()
                write_notice("\n")
                if key in ("n", END, ESCAPE):
                    return False
        return True

    def ask_operator(self, request: ApprovalRequest, origin: ConversationOrigin) -> Answer:
        """Ask the user at the terminal, who resumed a conversation of a chat platform here."""
        whose = f"This conversation belongs to {origin.source}: [a] also allows it for its users, without asking you."
        return self(replace(request, note=" ".join(filter(None, [request.note, whose]))))

    def ask_secret(self, request: SecretRequest) -> str | None:
        """Ask for a value that is not shown while it is typed; return None if the user gives none."""
        width, _ = _terminal_size()
        lines = split_rows(printable(f"{request.name} is not set."), width - 1)
        lines += split_rows(printable(request.help), width - 1)[:_HELP_ROWS] if request.help else []
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


def _read_answer(choices: list[Choice]) -> Answer | None:
    """Return the answer that a key gives; None if a text is needed first."""
    wait_for_silence()
    keys = [each.key for each in choices]
    question = QUESTION.format(keys=f"{', '.join(keys[:-1])} or {keys[-1]}")
    write_notice(question)
    with on_resume(lambda: write_notice(question)):
        while True:
            key = read_key()
            chosen = next((each for each in choices if each.key == key), None)
            if key in (END, ESCAPE):
                chosen = next(each for each in choices if each.key == "n")
            if chosen is not None:
                write_notice(f"{chosen.key}\n")
                return chosen.answer


def _read_instead() -> Answer:
    """Ask what should be done instead; without a text, the request is only denied."""
    with fresh_input():
        write_notice(INSTEAD)
        line = read_chunk()
    if not line.endswith(b"\n"):
        write_notice("\n")
    return Answer(Decision.DENY, instead=line.decode("utf-8", "replace").strip())


def _terminal_size() -> tuple[int, int]:
    """Return the columns and lines of the terminal on stderr."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return _COLUMNS, _LINES
    return size.columns or _COLUMNS, size.lines or _LINES
