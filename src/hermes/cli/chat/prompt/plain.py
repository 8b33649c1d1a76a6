"""The prompt of a terminal that cannot move its cursor (`TERM=dumb`), such as the shell of an editor."""

from __future__ import annotations

import time

from hermes.cli.chat.keyboard.stdin_lines import StdinLines
from hermes.cli.chat.keyboard.watch import take_typed
from hermes.cli.chat.terminal.output import write_answer, write_notice
from hermes.cli.chat.terminal.signals import CtrlCPresses, Signals
from hermes.cli.display.terminal import printable

MARK = "> "


class PlainPrompt:
    """Reads lines as the terminal sends them: without a menu, a status line, a history, or keys of its own."""

    def __init__(self, signals: Signals) -> None:
        self._stdin = StdinLines(signals)
        self._presses = CtrlCPresses()
        self._lines = 0
        self._typed = ""
        """What was typed while no prompt was shown, and not yet returned."""

    def read(self, draft: str = "") -> str:
        """Return the next line; raise EOFError after Ctrl-D or a second Ctrl-C, KeyboardInterrupt after the first.

        A draft, which cannot be put at the prompt, is shown above it.
        """
        if draft:
            write_notice(f"{printable(draft)}\n")
        self._typed += take_typed().decode("utf-8", "replace").replace("\r", "\n")
        line, end, rest = self._typed.partition("\n")
        write_answer(f"{MARK}{printable(line)}{end}")
        self._typed = rest
        if not end:
            try:
                line += self._stdin.read()
            except (EOFError, KeyboardInterrupt) as key:
                write_answer("\n")  # the terminal shows no Enter for these keys
                if isinstance(key, KeyboardInterrupt) and self._presses.is_second(time.monotonic(), self._lines):
                    raise EOFError from None
                raise
        self._lines += 1
        return line
