"""Threads for work that may never end: it keeps neither other work nor the process from ending."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Literal

from hermes.log import warn


class Job:
    """A piece of work on a thread."""

    def __init__(self, threads: WorkerThreads, work: Callable[[], object]) -> None:
        self.work = work
        self.state: Literal["waiting", "running", "ended", "dropped", "abandoned"] = "waiting"
        self._threads = threads

    def drop(self) -> bool:
        """Take back work that has not started; return False if it has."""
        return self._threads._drop(self)

    def abandon(self) -> None:
        """Give up the thread of the work, so that other work can start; the thread ends when the work does."""
        self._threads._abandon(self)


class WorkerThreads:
    """Runs work on at most `limit` daemon threads, not counting abandoned ones; further work waits in order."""

    def __init__(self, limit: int, name: str) -> None:
        self.abandoned_total = 0
        """How many threads were ever abandoned."""
        self._limit = max(1, limit)
        self._name = name
        self._waiting: deque[Job] = deque()
        self._running = 0
        self._abandoned = 0
        self._started = 0
        self._changed = Condition()

    @property
    def running(self) -> int:
        """How much work runs now, without abandoned work."""
        return self._running

    @property
    def waiting(self) -> int:
        """How much work waits for a thread."""
        return len(self._waiting)

    @property
    def abandoned(self) -> int:
        """How many abandoned threads still run."""
        return self._abandoned

    def submit(self, work: Callable[[], object]) -> Job:
        """Run work on a thread, now or when one is free."""
        job = Job(self, work)
        with self._changed:
            self._waiting.append(job)
            if self._running < self._limit:
                self._start_next()
        return job

    def wait(self, timeout_s: float) -> bool:
        """Wait until no work runs or waits, except abandoned work; return False on timeout."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._running or self._waiting:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def _start_next(self) -> None:
        """Start a thread for the oldest waiting work; the caller holds the lock."""
        job = self._waiting.popleft()
        self._started += 1
        job.state = "running"
        thread = Thread(target=self._run, args=(job,), name=f"{self._name}-{self._started}", daemon=True)
        try:
            thread.start()
        except BaseException:
            job.state = "dropped"
            raise
        self._running += 1

    def _run(self, first: Job) -> None:
        job: Job | None = first
        while job is not None:
            try:
                job.work()
            except BaseException:  # noqa: BLE001  the thread must be counted as free, whatever happens
                warn(__name__, "work on the thread %s failed:\n%s", self._name, traceback.format_exc())
            job = self._next(job)

    def _next(self, ended: Job) -> Job | None:
        """Count the end of work and return the next work for this thread, if there is any."""
        with self._changed:
            if ended.state == "abandoned":
                self._abandoned -= 1
                return None
            ended.state = "ended"
            if self._waiting:
                job = self._waiting.popleft()
                job.state = "running"
                return job
            self._running -= 1
            self._changed.notify_all()
            return None

    def _drop(self, job: Job) -> bool:
        with self._changed:
            if job.state != "waiting":
                return job.state == "dropped"
            self._waiting.remove(job)
            job.state = "dropped"
            self._changed.notify_all()
            return True

    def _abandon(self, job: Job) -> None:
        if self._drop(job):
            return
        with self._changed:
            if job.state != "running":
                return
            job.state = "abandoned"
            self._running -= 1
            self._abandoned += 1
            self.abandoned_total += 1
            if self._waiting:
                self._start_next()
            self._changed.notify_all()
