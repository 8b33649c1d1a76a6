"""Waiting that a search is not to blame for, and that does not use up its budget."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Waits:
    """How long one search has waited for others: for the processor, the disk or the server."""

    most_s: float
    """No more than this is left out of account."""
    total_s: float = 0.0

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Add the time in which this thread does nothing, during work that is small wherever it is done."""
        began, worked = time.monotonic(), time.thread_time()
        try:
            yield
        finally:
            waited_s = (time.monotonic() - began) - (time.thread_time() - worked)
            self.total_s = min(self.most_s, self.total_s + max(0.0, waited_s))
