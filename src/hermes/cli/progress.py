"""A progress bar on stderr, which disappears when the work is done."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hermes.cli.display.terminal import clip, printable
from hermes.state.engine import Report

EVERY_S = 0.1
BAR = 24


@contextmanager
def progress() -> Iterator[Report | None]:
    """Yield a function that reports progress, or None if stderr is not a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    line = _Line()
    try:
        yield line.show
    finally:
        line.clear()


class _Line:
    def __init__(self) -> None:
        self._began = time.monotonic()
        self._drawn_at = 0.0

    def show(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._drawn_at < EVERY_S and done < total:
            return
        self._drawn_at = now
        text = printable(f"{what} {format_bar(done, total)}  {now - self._began:.0f} s")
        sys.stderr.write(f"\r\x1b[2K{clip(text, os.get_terminal_size(sys.stderr.fileno()).columns - 1)}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._drawn_at:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def format_bar(done: int, total: int) -> str:
    """Format a bar with a percentage, or a plain number if the total is unknown."""
    if total <= 0:
        return f"{done:,}".replace(",", " ")
    share = min(1.0, done / total)
    filled = int(share * BAR)
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {share:4.0%}"
