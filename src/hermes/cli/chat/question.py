"""A question to the person that is answered by yes or no."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.chat.keys import fresh_line
from hermes.cli.chat.lines import read_chunk
from hermes.cli.chat.output import write_talk

if TYPE_CHECKING:
    from hermes.cli.chat.signals import Signals

YES = ("y", "yes")


def ask(question: str, signals: Signals) -> bool:
    """Ask on the terminal; everything but a clear yes is a no, Ctrl-C and the end of the input too."""
    try:
        with signals.question(), fresh_line():
            write_talk(f"{question} [y/N]: ")
            return read_chunk().decode("utf-8", "replace").strip().lower() in YES
    except (KeyboardInterrupt, EOFError):
        write_talk("\n")
        return False
