"""The clock of a node: that of the database, so that nodes agree about resets, limits and ages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hermes.errors import HermesError
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.clock import Clock

EVERY_S = 60.0
TOLERANCE_S = 2.0
"""A difference of this size is no wrong clock: the question takes time too."""


class NodeClock:
    """The time of the machine, corrected by its difference from the database server."""

    def __init__(self, clock: Clock) -> None:
        self.offset_s = 0.0
        """What is added to the time of the machine."""
        self._clock = clock

    def __call__(self) -> float:
        """Return the time."""
        return self._clock() + self.offset_s

    async def compare(self, read_time: Callable[[], Awaitable[float]]) -> None:
        """Ask the database for its time, and use it if the clock of the machine is wrong."""
        asked_at = self._clock()
        there = await read_time()
        answered_at = self._clock()
        offset_s = there - (asked_at + answered_at) / 2
        if abs(offset_s) <= TOLERANCE_S + abs(answered_at - asked_at):
            offset_s = 0.0
        elif not self.offset_s:
            how = "ahead of" if offset_s < 0 else "behind"
            warn(__name__, "the clock of this machine is %.0f s %s the database, whose time counts", abs(offset_s), how)
        self.offset_s = offset_s

    async def follow(self, read_time: Callable[[], Awaitable[float]]) -> None:
        """Compare the clocks now and then, for ever."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.compare(read_time)
            except HermesError:
                continue  # the database is away, and other parts of the node say so
