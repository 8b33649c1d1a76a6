"""How long to wait before the next attempt to connect."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Waits that double up to a limit; `reset` after a connection that lasted.

    A part of each wait is random, so that many clients do not return to a server at the same moment.
    """

    def __init__(
        self,
        first_s: float = 1.0,
        most_s: float = 60.0,
        jitter: float = 0.25,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._jitter = jitter
        self._chance = chance
        self.failures = 0
        """How many attempts have failed since the last reset."""

    def next_s(self, at_least_s: float | None = None) -> float:
        """Return the wait after one more failure; `at_least_s` is what the platform asks for."""
        wait_s = min(self._first_s * 2.0 ** min(self.failures, 32), self._most_s)
        self.failures += 1
        wait_s *= 1.0 - self._jitter * self._chance()
        return max(wait_s, at_least_s or 0.0)

    def reset(self) -> None:
        """Begin with the first wait again."""
        self.failures = 0
