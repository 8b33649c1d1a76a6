"""An event loop whose time passes only when nothing else can happen."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

BUSY_CALLS = 100_000
"""A program that does so much in no time is caught in a loop."""
ROUNDS = 1_000


class Deadlock(AssertionError):
    """Nothing can happen any more, but the program waits."""


class _Selector(selectors.SelectSelector):
    """Advances the time instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._idle_calls = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            self._idle_calls += 1
            if self._idle_calls > BUSY_CALLS:
                raise Deadlock("a task runs for ever without waiting")
            return ready
        self._idle_calls = 0
        if timeout is None:
            raise Deadlock("every task waits for something that cannot happen")
        self.now = max(self.now + timeout, math.nextafter(self.now, math.inf))
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with virtual time, which starts at `start`."""

    def __init__(self, start: float) -> None:
        self._virtual = _Selector()
        self._virtual.now = start
        super().__init__(self._virtual)
        self._clock_resolution = 1e-6  # floats near the present time are 2.4e-7 apart

    def time(self) -> float:
        """Return the virtual time."""
        return self._virtual.now


def run_virtual(main: Coroutine[Any, Any, T], start: float) -> tuple[T, float]:
    """Run a program in virtual time; return its result and the time at its end."""
    loop = VirtualLoop(start)
    asyncio.set_event_loop(loop)
    try:
        result = loop.run_until_complete(main)
        return result, loop.time()
    finally:
        _end_tasks(loop)
        asyncio.set_event_loop(None)
        loop.close()


def _end_tasks(loop: VirtualLoop) -> None:
    """Cancel all tasks, also those that wait again while they clean up."""
    for _ in range(ROUNDS):
        tasks = asyncio.all_tasks(loop)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.01))
    raise AssertionError(f"tasks do not end: {asyncio.all_tasks(loop)}")
