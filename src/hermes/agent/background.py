"""Work beside the conversation: a few threads at a time, and nobody waits for them but at the end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

from hermes.log import warn

WORKERS = 2
MAX_WAITING = 1_000


class BackgroundTasks:
    """Runs what it is given, soon, in order, on threads that end when there is nothing left."""

    def __init__(self, workers: int = WORKERS, max_waiting: int = MAX_WAITING) -> None:
        self._workers = workers
        self._max_waiting = max_waiting
        self._waiting: deque[Callable[[], object]] = deque()
        self._running = 0
        self._changed = Condition()

    def submit(self, work: Callable[[], object]) -> bool:
        """Have something done; False if so much waits already that it is not going to be."""
        with self._changed:
            if len(self._waiting) >= self._max_waiting:
                return False
            self._waiting.append(work)
            if self._running < self._workers:
                self._running += 1
                # It must not keep the process from ending.
                Thread(target=self._run, name="hermes-background", daemon=True).start()
            return True

    def settle(self, timeout_s: float) -> bool:
        """Wait until all is done; False if that took longer."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._running:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._running -= 1
                    self._changed.notify_all()
                    return
                work = self._waiting.popleft()
            try:
                work()
            except Exception as error:  # noqa: BLE001 - nobody waits for it, so the log has to tell
                warn(__name__, "work in the background failed: %s: %s", type(error).__name__, error)
