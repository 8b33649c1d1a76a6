"""Asking a person, in the middle of a turn, whether a tool may do what it wants."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from hermes.agent.safety.approval import Decision, Origin, Request
from hermes.agent.safety.visible import folded
from hermes.cli.chat.keys import fresh_line
from hermes.cli.chat.lines import read_chunk
from hermes.cli.chat.output import write_talk
from hermes.cli.chat.screen import Screen
from hermes.cli.chat.signals import Signals
from hermes.cli.chat.style import bold
from hermes.cli.terminal import clip, graphemes, printable, printable_lines, width_of

QUESTION = "Allow it? [y]es, for this [s]ession, [a]lways, [N]o: "
MORE = "-- {shown} of {count} rows; Enter shows more, [n]o denies it: "
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
"""Of a terminal that does not tell."""
_MIN_COLUMNS, _MIN_ROWS = 8, 4
_NOTE_ROWS = 3
_QUESTION_ROWS = 2 * _NOTE_ROWS + 4
"""Rows that are left for what stands beside the question, and for the question."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks on the terminal; what is not a clear yes is a no."""

    screen: Screen
    signals: Signals

    def __call__(self, request: Request) -> Decision:
        """Show what is wanted, and read what the person decides; Ctrl-C ends the turn as well."""
        width, height = _size()
        rows = _rows(folded(request.detail), max(_MIN_COLUMNS, width - len(_INDENT) - 1))
        self.screen.show([bold(clip(printable(request.summary), width - 1))])
        try:
            with self.signals.question():
                with fresh_line():
                    if not self._has_shown(rows, max(_MIN_ROWS, height - _QUESTION_ROWS)):
                        return Decision.DENY
                self.screen.show(_beside_question(request, width))
                with fresh_line():  # what was typed at a page is no answer to the question
                    return _read_decision()
        except KeyboardInterrupt:
            self.signals.stop_turn()
            self.screen.say()
            return Decision.DENY

    def _has_shown(self, rows: list[str], page: int) -> bool:
        """Show rows, of many a page at a time; False if the person denies it before the end."""
        for start in range(0, len(rows), page):
            self.screen.show([f"{_INDENT}{row}" for row in rows[start : start + page]])
            if start + page < len(rows):
                write_talk(MORE.format(shown=start + page, count=len(rows)))
                line = read_chunk()
                # A yes does not count before all of it was shown.
                if not line or _answer(line) in ("n", "no"):
                    return False
        return True

    def ask_operator(self, request: Request, origin: Origin) -> Decision:
        """Ask about a conversation of a chat platform that was resumed here: the person at the terminal runs it."""
        whose = f"This conversation is one of {origin.source}: [a] holds for its people there, without asking you."
        return self(replace(request, note=" ".join(filter(None, [request.note, whose]))))


def _read_decision() -> Decision:
    while True:
        write_talk(QUESTION)
        decision = ANSWERS.get(_answer(read_chunk()))
        if decision is not None:
            return decision


def _answer(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip().lower()


def _size() -> tuple[int, int]:
    """The columns and lines of the terminal on which the question is shown."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return _COLUMNS, _LINES
    return size.columns or _COLUMNS, size.lines or _LINES


def _rows(text: str, width: int) -> list[str]:
    """The rows that a text takes on the screen."""
    rows: list[str] = []
    for line in printable_lines(text).split("\n"):
        row, columns = "", 0
        for each in graphemes(line):
            taken = width_of(each)
            if row and columns + taken > width:
                rows.append(row)
                row, columns = "", 0
            row, columns = row + each, columns + taken
        rows.append(row)
    return rows


def _beside_question(request: Request, width: int) -> list[str]:
    """What stands right above the question, however long the rest is: the last line of it says what matters most."""
    count = request.subject.count("\n") + 1
    size = "1 line" if count == 1 else f"{count} lines"
    size = f" ({size}, {request.risk} risk)"
    room = width - 1
    notes = _rows(f"Note: {request.note}", room)[:_NOTE_ROWS] if request.note else []
    permit = _rows(printable(f"[s] and [a] would allow {request.permit}."), room)
    permit = permit if len(permit) <= _NOTE_ROWS else [*permit[: _NOTE_ROWS - 1], clip("...", room)]
    return [*notes, *permit, bold(f"{clip(printable(request.summary), max(_MIN_COLUMNS, room - len(size)))}{size}")]
