"""A clock that moves only on request."""

from __future__ import annotations

NOW = 1_750_000_000.0
DAY_S = 86_400.0


class FakeClock:
    """The time in a test."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        """Let time pass (or, with a negative number, step back) and return the new time."""
        self.now += seconds
        return self.now
