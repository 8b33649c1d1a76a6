"""A spinner that is shown while the user waits, and cleared before other output."""

from __future__ import annotations

import sys
import time
from threading import Condition, Thread

from hermes.cli.chat.terminal.output import write_notice
from hermes.cli.chat.terminal.style import can_move, dim

EVERY_S = 0.1
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_CLEAR_LINE = "\r\x1b[2K"


class Spinner:
    """Counts the seconds on stderr if both streams are terminals; otherwise does nothing."""

    def __init__(self) -> None:
        self._is_wanted = can_move(sys.stderr) and can_move(sys.stdout)
        self._label = ""
        self._began = 0.0
        self._is_on = False
        self._is_drawn = False
        self._changed = Condition()
        self._thread: Thread | None = None

    def show(self, label: str) -> None:
        """Show the spinner with a label and the elapsed time."""
        if not self._is_wanted:
            return
        with self._changed:
            if not self._is_on or self._label != label:
                self._began = time.monotonic()
            self._label, self._is_on = label, True
            if self._thread is None:
                self._thread = Thread(target=self._run, name="hermes-spinner", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def hide(self) -> None:
        """Clear the spinner before other output."""
        with self._changed:
            self._is_on = False
            if self._is_drawn:
                write_notice(_CLEAR_LINE)
                self._is_drawn = False

    def _run(self) -> None:
        turn = 0
        with self._changed:
            while True:
                self._changed.wait(EVERY_S if self._is_on else None)
                if not self._is_on or time.monotonic() - self._began < EVERY_S:
                    continue  # a fast reply needs no spinner
                elapsed = time.monotonic() - self._began
                frame = FRAMES[turn % len(FRAMES)]
                write_notice(f"{_CLEAR_LINE}{dim(f'{frame} {self._label} {elapsed:.0f} s')}")
                self._is_drawn = True
                turn += 1
