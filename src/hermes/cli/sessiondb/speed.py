"""The speed and the remaining time of long work."""

from __future__ import annotations

import time
from collections.abc import Callable

from hermes.state.engine import Report

SHORTEST_S = 0.5
"""The minimum time before a speed is shown."""


class SpeedReporter:
    """Forwards progress reports with the speed added."""

    def __init__(self, report: Report, clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._what = ""
        self._first = 0
        self._began = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Forward a progress report."""
        if what != self._what:
            # Work done by an earlier run does not count for the speed.
            self._what, self._first, self._began = what, done, self._clock()
        self._report(
            f"{what}{format_speed(done - self._first, total - done, self._clock() - self._began)}", done, total
        )


def format_speed(done: int, left: int, seconds: float) -> str:
    """Format the speed per second and the remaining time."""
    if done <= 0 or seconds < SHORTEST_S:
        return ""
    rate = done / seconds
    return f" {rate:,.0f}/s, {max(0, left) / rate:.0f} s left"
