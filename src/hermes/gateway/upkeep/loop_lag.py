"""How late the event loop runs: what messages and leases have to wait for."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass

SLEEP_S = 0.05
MOST_SAMPLES = 1200
"""The samples of the last minute."""
RECENT_SAMPLES = 20
"""The samples of the last second."""


@dataclass(frozen=True, slots=True)
class LagFigures:
    """How late the loop was, in seconds, in the last minute."""

    samples: int = 0
    p50_s: float = 0.0
    p99_s: float = 0.0
    max_s: float = 0.0
    recent_s: float = 0.0
    """The largest of the last second."""


class LoopLag:
    """Measures how much later than it should a short sleep ends."""

    def __init__(self, sleep_s: float = SLEEP_S) -> None:
        self._sleep_s = sleep_s
        self._samples: deque[float] = deque(maxlen=MOST_SAMPLES)

    def add(self, lag_s: float) -> None:
        """Keep a sample; the oldest one is dropped."""
        self._samples.append(max(0.0, lag_s))

    async def run(self) -> None:
        """Measure for ever; cancel the task to stop it."""
        loop = asyncio.get_running_loop()
        while True:
            asleep_at = loop.time()
            await asyncio.sleep(self._sleep_s)
            self.add(loop.time() - asleep_at - self._sleep_s)

    def figures(self) -> LagFigures:
        """Return the quantiles of the samples."""
        if not self._samples:
            return LagFigures()
        ordered = sorted(self._samples)
        recent = list(self._samples)[-RECENT_SAMPLES:]
        return LagFigures(len(ordered), quantile(ordered, 0.5), quantile(ordered, 0.99), ordered[-1], max(recent))


def quantile(ordered: list[float], part: float) -> float:
    """Return the smallest value that at least this part of the sorted values does not exceed."""
    return ordered[max(1, math.ceil(part * len(ordered))) - 1]
