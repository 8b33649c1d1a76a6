"""A pager for text that is longer than the screen."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys

from hermes.cli.display.terminal import write_stdout
from hermes.cli.display.wrapping import strip_codes, taken_rows

DEFAULT = "less -R"


def page_text(text: str, *, is_wanted: bool = True) -> None:
    """Write text to stdout; on a terminal that it does not fit on, through `$PAGER`, or else `less -R`."""
    command = _pager() if is_wanted and _is_screen() and _is_longer(text) else []
    if not command or not _has_run(command, text):
        write_stdout(text)


def _is_screen() -> bool:
    return sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _is_longer(text: str) -> bool:
    """Whether a text takes more rows than the terminal has, without the one for the next prompt."""
    size = shutil.get_terminal_size()
    rows = 0
    for line in text.split("\n"):
        rows += taken_rows(strip_codes(line), size.columns)
        if rows >= size.lines:
            return True
    return False


def _pager() -> list[str]:
    """Return the command of the pager; empty if there is none, or the user wants none."""
    try:
        command = shlex.split(os.environ.get("PAGER", DEFAULT))
    except ValueError:  # a quote is not closed
        return []
    return command if command and command != ["cat"] and shutil.which(command[0]) else []


def _has_run(command: list[str], text: str) -> bool:
    """Show the text in a pager until the user leaves it; return False if it cannot be started."""
    environment = {"LESS": "R", "LV": "-c", **os.environ}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the pager
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, restore_signals=True)
    except OSError:
        return False
    else:
        pager.communicate(f"{text}\n".encode("utf-8", "replace"))  # a pager that ends early leaves the rest
        return True
    finally:
        signal.signal(signal.SIGINT, before)
