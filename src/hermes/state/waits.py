"""Measure waiting that does not count against a search's time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Waits:
    """The time that one search waited for the processor, the disk or the server."""

    most_s: float
    """At most this much waiting is not counted."""
    total_s: float = 0.0

    @contextmanager
    def exclude_waiting(self) -> Iterator[None]:
        """Do not count the time in which this thread waits inside the block; the block itself must take little time."""
        began, worked = time.monotonic(), time.thread_time()
        try:
            yield
        finally:
            waited_s = (time.monotonic() - began) - (time.thread_time() - worked)
            self.total_s = min(self.most_s, self.total_s + max(0.0, waited_s))
