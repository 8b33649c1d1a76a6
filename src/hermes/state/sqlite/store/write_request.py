"""A caller's request to write, and its result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hermes.state.sqlite.connection import View


class WriteRequest:
    """One caller's work, its result or error, and the signal that wakes the caller."""

    __slots__ = ("done", "error", "leads", "result", "signal", "work")

    def __init__(self, work: Callable[[View], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.signal: threading.Lock | None = None

    def prepare_to_wait(self) -> None:
        """Create the signal; a caller that leads from the start never needs it."""
        if self.signal is None:
            self.signal = threading.Lock()
            self.signal.acquire()

    def wait(self, timeout_s: float = -1) -> bool:
        """Wait for `notify`; False if it does not come within `timeout_s`."""
        assert self.signal is not None
        return self.signal.acquire(timeout=timeout_s)

    def notify(self) -> None:
        """Wake the caller: its request is done, or it leads now."""
        if self.signal is not None and self.signal.locked():
            self.signal.release()
