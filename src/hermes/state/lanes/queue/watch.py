"""Waiting for work: by notification where the database can notify, else by reading the ends of three indexes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hermes.state.engine import Engine
from hermes.state.lanes.queue.queue_row import MAX_LEASE_S
from hermes.state.lanes.types import Watermark
from hermes.state.rows import require_number

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.25
"""How long to wait between two looks at a database that cannot notify: first short, then longer."""
LISTEN_S = 1.0
"""How long to wait for a notification before looking anyway."""


class LaneWatch:
    """Waits until there is work for a node: a lane that can be claimed, or a new message in any lane.

    One thread waits; any thread may close it, which ends the wait.
    """

    def __init__(self, engine: Engine, node: str, peek: Callable[[], Watermark]) -> None:
        self._peek = peek
        self._closed = threading.Event()
        self._newest = peek().newest_id
        self._listener = engine.listen_lanes(node)

    def wait(self, timeout_s: float) -> bool:
        """Return True as soon as there is work, False after the time limit; this only reads."""
        deadline = time.monotonic() + require_number(timeout_s, "timeout_s")
        pause_s = SHORTEST_PAUSE_S
        while not self._closed.is_set():
            seen = self._peek()
            if self._has_work(seen):
                return True
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            next_end_s = seen.first_lease_until - seen.now if seen.first_lease_until else left_s
            if self._listener is not None:
                self._listener.wait(min(left_s, next_end_s, LISTEN_S))
            else:
                self._closed.wait(min(left_s, next_end_s, pause_s))
                pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        return False

    def close(self) -> None:
        """End the wait and close the connection for notifications; a second call does nothing."""
        self._closed.set()
        if self._listener is not None:
            self._listener.close()

    def _has_work(self, seen: Watermark) -> bool:
        is_new, self._newest = seen.newest_id != self._newest, seen.newest_id
        has_ended = 0 < seen.first_lease_until <= seen.now or seen.last_lease_until > seen.now + MAX_LEASE_S
        return is_new or seen.ready_id > 0 or has_ended
