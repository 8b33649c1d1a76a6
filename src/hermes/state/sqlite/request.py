"""What one caller wants written, and how it hears of the outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hermes.state.sqlite.connection import View


class Request:
    """One caller's work and what became of it."""

    __slots__ = ("done", "error", "leads", "result", "signal", "work")

    def __init__(self, work: Callable[[View], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.signal: threading.Lock | None = None

    def will_wait(self) -> None:
        """Prepare to be told; a caller that leads from the start never needs it."""
        if self.signal is None:
            self.signal = threading.Lock()
            self.signal.acquire()

    def wait(self, timeout_s: float = -1) -> bool:
        """Wait to be told; False if that did not happen in time."""
        assert self.signal is not None
        return self.signal.acquire(timeout=timeout_s)

    def tell(self) -> None:
        """Let the caller go on: with the outcome, or as the next leader."""
        if self.signal is not None and self.signal.locked():
            self.signal.release()
