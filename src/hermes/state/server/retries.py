"""How often and until when failed work is retried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import random

from hermes.state.server.faults import Verdict

LOOKS = 8
"""How many times in a row the work may conflict with stored rows before the conflict counts as real."""
SHORT_S, LONG_S = 0.002, 0.25
CONNECTIONS = 16
"""How many pooled connections may have died unnoticed, while no thread used them."""
RECONNECT_S, LONGEST_RECONNECT_S = 0.05, 1.0


@dataclass
class Attempts:
    """The attempts at one piece of work."""

    deadline: float
    may_repeat: bool = False
    """Whether an earlier attempt may have done the work without a response."""
    chance: Callable[[], float] = random
    _looks: int = 0
    _waits: int = 0
    _connections: int = 0

    def pause(self, verdict: Verdict, now: float) -> float | None:
        """How many seconds to wait before the next attempt; None if there is no next one."""
        if now >= self.deadline:
            return None
        match verdict:
            case Verdict.NEVER:
                return None
            case Verdict.RETRY_NOW:
                self._looks += 1
                return 0.0 if self._looks < LOOKS else None
            case Verdict.RETRY_SOON:
                # Random pauses, so that transactions that collided do not collide again.
                longest = min(LONG_S, SHORT_S * 2.0**self._waits)
                self._waits += 1
                return self.chance() * longest
            case Verdict.RECONNECT:
                self._connections += 1
                failures = self._connections - CONNECTIONS
                return 0.0 if failures <= 0 else min(LONGEST_RECONNECT_S, RECONNECT_S * 2.0**failures)
