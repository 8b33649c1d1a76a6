"""A spinner with the end of a tool's output, shown while the user waits, and cleared before other output."""

from __future__ import annotations

import sys
import time
from threading import Condition, Thread

from hermes.cli.chat.terminal.live_rows import LiveRows, screen_lines
from hermes.cli.chat.terminal.output import write_notice
from hermes.cli.chat.terminal.style import can_move, dim
from hermes.cli.chat.tool_display.lines import last_lines
from hermes.cli.display.terminal import clip, printable, terminal_width

EVERY_S = 0.1
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
MAX_ROWS = 4
"""How many lines of output are shown."""
MIN_HEIGHT = 12
"""On a lower screen no output is shown."""
_SHORTEST = 8


class Spinner:
    """Counts the seconds on stderr if both streams are terminals; otherwise does nothing."""

    def __init__(self) -> None:
        self._is_wanted = can_move(sys.stderr) and can_move(sys.stdout)
        self._label = ""
        self._output = ""
        self._began = 0.0
        self._is_on = False
        self._rows = LiveRows()
        self._changed = Condition()
        self._thread: Thread | None = None

    def show(self, label: str) -> None:
        """Show the spinner with a label and the elapsed time."""
        if not self._is_wanted:
            return
        with self._changed:
            if not self._is_on or self._label != label:
                self._began = time.monotonic()
            self._label, self._output, self._is_on = label, "", True
            if self._thread is None:
                self._thread = Thread(target=self._run, name="hermes-spinner", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def show_output(self, tail: str) -> None:
        """Show the end of an output below the spinner."""
        with self._changed:
            self._output = tail

    def hide(self) -> None:
        """Clear the spinner before other output."""
        with self._changed:
            self._is_on = False
            if text := self._rows.draw([], []):
                write_notice(text)

    def _run(self) -> None:
        turn = 0
        with self._changed:
            while True:
                self._changed.wait(EVERY_S if self._is_on else None)
                if not self._is_on or time.monotonic() - self._began < EVERY_S:
                    continue  # a fast reply needs no spinner
                elapsed = time.monotonic() - self._began
                frame = FRAMES[turn % len(FRAMES)]
                width = max(_SHORTEST, terminal_width() - 1)
                rows = [clip(f"{frame} {self._label} {elapsed:.0f} s", width), *self._output_rows(width)]
                write_notice(self._rows.draw([], [dim(row) for row in rows]))
                turn += 1

    def _output_rows(self, width: int) -> list[str]:
        if screen_lines() < MIN_HEIGHT:
            return []
        lines = last_lines(self._output, MAX_ROWS)
        return [clip(f"  {printable(line.expandtabs(4))}", width) for line in lines]
