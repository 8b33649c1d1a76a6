"""The one writer of a process: threads share its transactions, processes take turns at the lock.

A caller that finds nobody writing leads: it takes the lock, runs its own work and whatever other threads have queued
meanwhile in one transaction, and commits once for all (group commit). Whenever the first attempt would have to wait,
for another process or a foreign SQLite writer, the waiting is done by a background thread, so that every caller keeps
its own time limit and can withdraw work that has not started.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, cast

import apsw

from hermes.errors import HermesError, StoreBusy, StoreClosed
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.faults import is_busy
from hermes.state.sqlite.lock import WriterLock

T = TypeVar("T")

WRITE_MAX_RETRIES = 15
WRITE_RETRY_MIN_S = 0.020
WRITE_RETRY_MAX_S = 0.150
GROUP_LIMIT = 64

SLOW_COMMIT_S = 0.001
GATHER_SHARE = 0.2
"""Where a commit is slow, a fifth of its time is well spent on waiting for the threads that will want the next one."""
CLOSE_TIMEOUT_S = 10.0


class Request:
    """One caller's work and what became of it."""

    __slots__ = ("done", "error", "leads", "result", "signal", "work")

    def __init__(self, work: Callable[[View], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.signal: threading.Lock | None = None

    def will_wait(self) -> None:
        """Prepare to be told; a caller that leads from the start never needs it."""
        if self.signal is None:
            self.signal = threading.Lock()
            self.signal.acquire()

    def wait(self, timeout_s: float = -1) -> bool:
        """Wait to be told; False if that did not happen in time."""
        assert self.signal is not None
        return self.signal.acquire(timeout=timeout_s)

    def settle(self) -> None:
        """Let the caller go on: with the outcome, or as the next leader."""
        if self.signal is not None and self.signal.locked():
            self.signal.release()


class Writer:
    """Runs work in durable transactions on one connection."""

    def __init__(
        self,
        connection: apsw.Connection,
        lock: WriterLock,
        *,
        translate: Callable[[apsw.Error], HermesError],
        after_commit: Callable[[View, int], None],
    ) -> None:
        self.view = View(connection)
        self.active: threading.local = threading.local()
        self._connection = connection
        self._execute = connection.execute
        self._lock = lock
        self._translate = translate
        self._after_commit = after_commit
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._queue: deque[Request] = deque()
        self._has_leader = False
        self._group_size = 0
        self._commit_s = 0.0
        self._background: threading.Thread | None = None
        self._wake = threading.Semaphore(0)
        self._closed = False

    def write(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Run `work` in a transaction that is durable when this returns."""
        request = Request(work)
        with self._mutex:
            if self._closed:
                raise StoreClosed
            leads = not self._has_leader
            self._has_leader = True
            if not leads:
                request.will_wait()
            self._queue.append(request)
        try:
            if leads:
                self._lead()
            self._await(request, timeout_s)
        except BaseException:
            self._withdraw(request)
            raise
        if request.error is not None:
            raise request.error
        return cast(T, request.result)

    def close(self, finish: Callable[[View], None]) -> None:
        """Take no more work, let what was queued be done, and `finish` if no other process is writing."""
        with self._mutex:
            self._closed = True
            # Whoever leads uses the connection until it stops leading, even after all callers have their answers.
            self._idle.wait_for(lambda: not self._has_leader, CLOSE_TIMEOUT_S)
            if self._has_leader:
                # The background thread waits for another process, with nothing left to write: it will not come back.
                self._wake.release()
                return
        self._wake.release()
        if self._lock.try_acquire():
            try:
                finish(self.view)
            finally:
                self._lock.release()

    def _await(self, request: Request, timeout_s: float) -> None:
        if request.done:
            return
        deadline = time.monotonic() + timeout_s
        while not request.done:
            if request.leads:
                request.leads = False
                self._lead()
            elif not request.wait(max(0.0, deadline - time.monotonic())):
                if self._withdraw(request):
                    raise StoreBusy(self._why_busy(timeout_s))
                # It is in a transaction by now, so its outcome is near and must be known.
                request.wait()

    def _withdraw(self, request: Request) -> bool:
        with self._mutex:
            try:
                self._queue.remove(request)
            except ValueError:
                return False
        if request.leads:
            self._pass_on()
        return True

    def _why_busy(self, timeout_s: float) -> str:
        holder = self._lock.holder()
        return f"another process has held the write lock for {timeout_s:g} s" + (f" ({holder})" if holder else "")

    def _lead(self) -> None:
        """Make one attempt on this thread; leave whatever needs waiting to the background thread."""
        if self._commit_s > SLOW_COMMIT_S and self._group_size > 1:
            self._gather()
        if not self._lock.try_acquire():
            self._delegate()
            return
        try:
            started = self._try_group()
        except BaseException:
            self._lock.release()
            self._pass_on()
            raise
        self._lock.release()
        if started:
            self._pass_on()
        else:
            self._delegate()

    def _gather(self) -> None:
        """Wait a little for as many as shared the last transaction, so that they share the next one too."""
        deadline = time.monotonic() + GATHER_SHARE * self._commit_s
        while len(self._queue) < self._group_size and time.monotonic() < deadline:
            time.sleep(SLOW_COMMIT_S / 20)

    def _pass_on(self) -> None:
        """Hand leadership to the next waiting caller, if any."""
        with self._mutex:
            if not self._queue:
                self._stop_leading()
                return
            heir = self._queue[0]
            heir.leads = True
        heir.settle()

    def _stop_leading(self) -> None:
        self._has_leader = False
        if self._closed:
            self._idle.notify_all()

    def _delegate(self) -> None:
        with self._mutex:
            for request in self._queue:
                request.will_wait()
        if self._background is None:
            self._background = threading.Thread(target=self._wait_and_write, name="hermes-writer", daemon=True)
            self._background.start()
        self._wake.release()

    def _wait_and_write(self) -> None:
        """The background thread: leads while there is something to wait for."""
        while True:
            self._wake.acquire()
            if self._closed and not self._queue:
                return
            while self._queue:
                self._lock.acquire()
                try:
                    self._persist()
                finally:
                    self._lock.release()
            with self._mutex:
                if not self._queue:
                    self._stop_leading()
                    continue
            self._wake.release()

    def _persist(self) -> None:
        """Try until a transaction starts, in jittered rounds, or every caller has given up."""
        import random  # rarely needed, and slow to load

        attempt = 0
        while self._queue and not self._try_group():
            attempt += 1
            # After a whole round the waiting itself is what matters, so every later round is the same.
            if attempt % WRITE_MAX_RETRIES:
                time.sleep(random.uniform(WRITE_RETRY_MIN_S, WRITE_RETRY_MAX_S))  # noqa: S311

    def _try_group(self) -> bool:
        """Run the queued work in one transaction; False if another writer kept it from starting."""
        try:
            self._execute("BEGIN IMMEDIATE")
        except apsw.Error as exc:
            if is_busy(exc):
                return False
            self._fail_all(self._translate(exc))
            return True
        with self._mutex:
            group = [self._queue.popleft() for _ in range(min(len(self._queue), GROUP_LIMIT))]
        try:
            settled = self._run_group(group)
        except BaseException:
            self._recover(group)
            raise
        for request in settled:
            request.settle()
        committed = sum(request.error is None for request in settled)
        if committed:
            self._after_commit(self.view, committed)
        return True

    def _recover(self, group: list[Request]) -> None:
        """Put things right after an interrupt of this thread, which is not the fault of the others in its group."""
        if self._connection.in_transaction:
            self._roll_back()
            self._requeue([request for request in group if not request.done])
            return
        # No transaction is open, so it was committed before the interrupt.
        for request in group:
            request.done = True
            request.settle()

    def _run_group(self, group: list[Request]) -> list[Request]:
        """Run each work under its own savepoint and commit once; answer the requests that are settled."""
        alone = len(group) == 1
        failed: Request | None = None
        for request in group:
            try:
                self._run_one(request, alone=alone)
            except apsw.Error as exc:
                request.error = self._translate(exc)
            except Exception as exc:  # noqa: BLE001 - the work is the caller's, and so is whatever it raises
                request.error = exc
            if request.error is not None and not self._connection.in_transaction:
                failed = request
                break
        if failed is None and (not alone or group[0].error is None):
            try:
                started = time.monotonic()
                self._execute("COMMIT")
                self._commit_s, self._group_size = time.monotonic() - started, len(group)
            except apsw.Error as exc:
                self._roll_back()
                failed = group[0]
                failed.error = self._translate(exc)
        if failed is not None:
            # SQLite undid the whole transaction. One gets the error, the others run again without it.
            others = [request for request in group if request is not failed]
            for request in others:
                request.error = request.result = None
            self._requeue(others)
            group = [failed]
        for request in group:
            request.done = True
        return group

    def _run_one(self, request: Request, *, alone: bool) -> None:
        outer = getattr(self.active, "view", None)
        self.active.view = self.view
        try:
            if not alone:
                self.view.run("SAVEPOINT work")
            request.result = request.work(self.view)
            if not alone:
                self.view.run("RELEASE work")
        except Exception:
            if alone:
                self._roll_back()
            elif self._connection.in_transaction:
                self.view.run("ROLLBACK TO work")
                self.view.run("RELEASE work")
            raise
        finally:
            self.active.view = outer

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self.view.run("ROLLBACK")

    def _requeue(self, requests: list[Request]) -> None:
        with self._mutex:
            for request in reversed(requests):
                request.will_wait()
                self._queue.appendleft(request)

    def _fail_all(self, error: HermesError) -> None:
        with self._mutex:
            requests = list(self._queue)
            self._queue.clear()
        for request in requests:
            request.error = error
            request.done = True
            request.settle()
