"""Background tasks: run on a few threads; the program waits for them only when it ends."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

from hermes.log import warn

WORKERS = 2
MAX_WAITING = 1_000


class BackgroundTasks:
    """Runs tasks in order on a few threads, which end when no tasks are left."""

    def __init__(self, workers: int = WORKERS, max_waiting: int = MAX_WAITING) -> None:
        self._workers = workers
        self._max_waiting = max_waiting
        self._waiting: deque[Callable[[], object]] = deque()
        self._running = 0
        self._changed = Condition()

    def submit(self, work: Callable[[], object]) -> bool:
        """Queue a task; return False if the queue is full and the task is dropped."""
        with self._changed:
            if len(self._waiting) >= self._max_waiting:
                return False
            self._waiting.append(work)
            if self._running < self._workers:
                self._running += 1
                # A daemon thread: it must not keep the process from ending.
                Thread(target=self._run, name="hermes-background", daemon=True).start()
            return True

    def settle(self, timeout_s: float) -> bool:
        """Wait until all tasks are done; return False on timeout."""
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
            except Exception as error:  # noqa: BLE001 - no caller waits for the task, so the failure goes to the log
                warn(__name__, "a background task failed: %s: %s", type(error).__name__, error)
