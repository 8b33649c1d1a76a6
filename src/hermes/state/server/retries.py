"""How often and until when work is tried again that somebody else, or a broken connection, kept from being done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import random

from hermes.state.server.faults import Verdict

LOOKS = 8
"""What contradicts the stored rows so many times in a row does so for good."""
SHORT_S, LONG_S = 0.002, 0.25
CONNECTIONS = 16
"""So many connections may have died unnoticed, while nobody used them."""
RECONNECT_S, LONGEST_RECONNECT_S = 0.05, 1.0


@dataclass
class Attempts:
    """The attempts at one piece of work."""

    deadline: float
    may_repeat: bool = False
    """Whether one of them may have done the work, unheard."""
    chance: Callable[[], float] = random
    _looks: int = 0
    _waits: int = 0
    _connections: int = 0

    def pause(self, verdict: Verdict, now: float) -> float | None:
        """How many seconds to wait before the next attempt; None: there is none."""
        if now >= self.deadline:
            return None
        match verdict:
            case Verdict.NEVER:
                return None
            case Verdict.RETRY_NOW:
                self._looks += 1
                return 0.0 if self._looks < LOOKS else None
            case Verdict.RETRY_SOON:
                # Spread at random, so that those who met do not meet again.
                longest = min(LONG_S, SHORT_S * 2.0**self._waits)
                self._waits += 1
                return self.chance() * longest
            case Verdict.RECONNECT:
                self._connections += 1
                failures = self._connections - CONNECTIONS
                return 0.0 if failures <= 0 else min(LONGEST_RECONNECT_S, RECONNECT_S * 2.0**failures)
