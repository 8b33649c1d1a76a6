"""Ctrl-C while something must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hermes.cli.display.terminal import write_stderr


@contextmanager
def delay_interrupt(what: str) -> Iterator[None]:
    """Let the block come to its end before Ctrl-C has its effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    was_pressed = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal was_pressed
        if not was_pressed:
            write_stderr(f"Finishing {what} first.")
        was_pressed = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if was_pressed:
        raise KeyboardInterrupt
