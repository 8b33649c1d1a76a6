"""Yes-or-no questions to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.chat.keyboard.stdin_lines import read_chunk
from hermes.cli.chat.keyboard.watch import fresh_input
from hermes.cli.chat.terminal.output import write_notice

if TYPE_CHECKING:
    from hermes.cli.chat.terminal.signals import Signals

YES = ("y", "yes")


def ask_yes_no(question: str, signals: Signals) -> bool:
    """Ask on the terminal. Anything but a clear yes is a no, including Ctrl-C and the end of input."""
    try:
        with signals.interruptible(), fresh_input():
            write_notice(f"{question} [y/N]: ")
            return read_chunk().decode("utf-8", "replace").strip().lower() in YES
    except (KeyboardInterrupt, EOFError):
        write_notice("\n")
        return False
