"""Delaying Ctrl-C while an operation must not stop halfway."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hermes.cli.display.terminal import write_stderr


@contextmanager
def delay_interrupt(what: str) -> Iterator[None]:
    """Run the block to its end, then raise KeyboardInterrupt if Ctrl-C was pressed meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    was_pressed = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal was_pressed
        if not was_pressed:
            write_stderr(f"Finishing {what} before stopping.")
        was_pressed = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if was_pressed:
        raise KeyboardInterrupt
