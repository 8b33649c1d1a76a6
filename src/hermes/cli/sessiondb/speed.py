"""How fast long work goes, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Callable

from hermes.state.engine import Report

SHORTEST_S = 0.5
"""Before that nobody can tell how fast it goes."""


class SpeedReporter:
    """Passes on what it hears of a piece of work, together with its pace."""

    def __init__(self, report: Report, clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._what = ""
        self._first = 0
        self._began = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Hear how far it has come."""
        if what != self._what:
            # What an earlier run has done was not done now.
            self._what, self._first, self._began = what, done, self._clock()
        self._report(
            f"{what}{format_speed(done - self._first, total - done, self._clock() - self._began)}", done, total
        )


def format_speed(done: int, left: int, seconds: float) -> str:
    """A pace for a person: how many in a second, and how long the rest takes."""
    if done <= 0 or seconds < SHORTEST_S:
        return ""
    rate = done / seconds
    return f" {rate:,.0f}/s, {max(0, left) / rate:.0f} s left"
