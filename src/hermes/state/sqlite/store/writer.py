"""The one writer of a process: threads share its transactions, processes take turns at the lock.

If no thread is writing, a caller becomes the leader: it takes the lock, runs its own work and the work that other
threads have queued in one transaction, and commits once for all (group commit). If the leader would have to wait for
another process or another program, a background thread waits instead, so that every caller keeps its own time limit
and can withdraw work that has not started.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import TypeVar, cast

import apsw

from hermes.errors import HermesError, StoreBusy, StoreClosed, StoreError
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.errors import is_busy
from hermes.state.sqlite.files.writer_lock import WriterLock
from hermes.state.sqlite.store.transaction import WritingTransaction
from hermes.state.sqlite.store.write_request import WriteRequest

T = TypeVar("T")

WRITE_MAX_RETRIES = 15
WRITE_RETRY_MIN_S = 0.020
WRITE_RETRY_MAX_S = 0.150
GROUP_LIMIT = 64
SLOW_COMMIT_S = 0.001
GATHER_SHARE = 0.2
"""If commits are slow, the leader waits up to this share of a commit's time for other threads to join the group."""

BACKGROUND = 0
NEXT_LEADER = -1
"""Values of `_leader` that are no thread id: the background thread, or the caller that was chosen but has not begun."""


class Writer:
    """Runs work in durable transactions on one connection."""

    def __init__(
        self,
        connection: apsw.Connection,
        lock: WriterLock,
        *,
        translate: Callable[[apsw.Error], HermesError],
        confirm: Callable[[], None],
        after_commit: Callable[[View], None],
    ) -> None:
        self._transaction = WritingTransaction(connection, translate)
        self.view = self._transaction.view
        self.active = self._transaction.active
        self._lock = lock
        self._translate = translate
        self._confirm = confirm
        self._after_commit = after_commit
        # Reentrant, because a signal handler may call this while its own thread holds it.
        self._mutex = threading.RLock()
        self._changed = threading.Condition(self._mutex)
        self._queue: deque[WriteRequest] = deque()
        self._group: list[WriteRequest] = []
        self._is_committing = False
        self._leader: int | None = None
        self._group_size = 0
        self._commit_s = 0.0
        self._background: threading.Thread | None = None
        self._wake = threading.Semaphore(0)
        self._is_at_lock = False
        self._is_watched = False
        self._closed = False

    def write(self, work: Callable[[View], T], timeout_s: float) -> T:
        """Run `work` in a transaction that is durable when this returns."""
        request = WriteRequest(work)
        deadline = time.monotonic() + timeout_s
        is_queued = False
        try:
            with self._mutex:
                if self._closed:
                    raise StoreClosed
                if self._leader == threading.get_ident():
                    raise StoreBusy(
                        "this thread is in the middle of a write", hint="do not write from a signal handler; set a flag"
                    )
                is_queued = True
                if self._leader is None:
                    self._leader = threading.get_ident()
                else:
                    request.prepare_to_wait()
                self._queue.append(request)
            if request.signal is None:
                self._lead()
            if not request.done:
                self._await(request, deadline, timeout_s)
        except BaseException:
            if is_queued:
                self._step_down(request)
            raise
        if request.error is not None:
            raise request.error
        return cast("T", request.result)

    def run_when_idle(self, work: Callable[[View], None]) -> bool:
        """Run `work`, which makes its own transactions, unless a caller or another process is writing; say whether."""
        with self._mutex:
            if self._closed or self._leader is not None:
                return False
            self._leader = threading.get_ident()
        try:
            if not self._lock.try_acquire():
                self._lock.release_gate_and_lock()
                return False
            try:
                self._confirm()
                work(self.view)
            finally:
                self._lock.release()
        finally:
            self._hand_over()
        return True

    def is_wanted(self) -> bool:
        """Whether callers or other processes wait; only for work that runs while the lock is held."""
        return bool(self._queue) or self._lock.is_contended()

    def close(self, finish: Callable[[View], None]) -> bool:
        """Refuse new work, complete the queued work, and call `finish` if no other process is writing.

        Returns False if the background thread is still waiting for the lock: then that thread closes the lock.
        """
        with self._mutex:
            self._closed = True
            self._wait_until_idle(None)
            is_free = self._leader is None
        self._wake.release()
        if is_free and self._can_finish():
            try:
                finish(self.view)
            finally:
                self._lock.release()
        return is_free

    def _can_finish(self) -> bool:
        try:
            return self._lock.try_acquire()
        except StoreError:
            return False  # a lock file cannot be made: every write has failed with this error, nothing to finish

    def this_thread_leads(self) -> bool:
        """Whether this thread is in the middle of a write; only a signal handler can see True."""
        return self._leader == threading.get_ident()

    def becomes_idle_within(self, timeout_s: float) -> bool:
        """Wait until no thread uses the connection; False if that takes longer than `timeout_s`."""
        with self._mutex:
            return self._wait_until_idle(timeout_s)

    def _wait_until_idle(self, timeout_s: float | None) -> bool:
        """Wait for the leader, which uses the connection even after all callers have their results."""
        self._is_watched = True
        return self._changed.wait_for(lambda: self._leader is None or (self._is_at_lock and not self._queue), timeout_s)

    def _await(self, request: WriteRequest, deadline: float, timeout_s: float) -> None:
        """Wait until a queued request is done, and lead if it is this caller's turn."""
        while not request.done:
            if request.leads:
                self._leader = threading.get_ident()
                request.leads = False
                self._lead()
            elif not request.wait(max(0.0, deadline - time.monotonic())):
                if self._withdraw(request):
                    raise StoreBusy(self._why_busy(timeout_s))
                # The request is in a transaction by now: it ends soon, and the caller must know how.
                request.wait(1.0)

    def _withdraw(self, request: WriteRequest) -> bool:
        """Remove a request that has not started from the queue."""
        with self._mutex:
            try:
                self._queue.remove(request)
            except ValueError:
                return False
            if self._is_watched:
                self._changed.notify_all()
        if request.leads:
            self._hand_over()
        return True

    def _why_busy(self, timeout_s: float) -> str:
        holder = self._lock.holder()
        if not holder:
            return f"could not write within {timeout_s:g} s"
        return f"another process has held the write lock for {timeout_s:g} s ({holder})"

    def _lead(self) -> None:
        """Try once on this thread; if that would wait, let the background thread lead."""
        if self._commit_s > SLOW_COMMIT_S and self._group_size > 1:
            self._wait_for_group()
        if not self._lock.try_acquire():
            self._wake_background()
            return
        has_started = self._try_group()
        self._lock.release()
        if has_started:
            self._hand_over()
        else:
            self._wake_background()

    def _wait_for_group(self) -> None:
        """Wait briefly until as many requests are queued as the last transaction had."""
        deadline = time.monotonic() + GATHER_SHARE * self._commit_s
        while len(self._queue) < self._group_size and time.monotonic() < deadline:
            time.sleep(SLOW_COMMIT_S / 20)

    def _hand_over(self) -> None:
        """Make the next waiting caller the leader, if there is one."""
        with self._mutex:
            if not self._queue:
                self._stop_leading()
                return
            next_leader = self._queue[0]
            next_leader.prepare_to_wait()
            next_leader.leads = True
            self._leader = NEXT_LEADER
        next_leader.notify()

    def _stop_leading(self) -> None:
        self._leader = None
        if self._is_watched:
            self._changed.notify_all()

    def _step_down(self, own: WriteRequest) -> None:
        """Remove an interrupted caller; if it led, roll back and requeue the requests of the others."""
        self._withdraw(own)
        with self._mutex:
            next_leader = self._queue[0] if self._leader == NEXT_LEADER and self._queue else None
        if next_leader is not None:
            next_leader.notify()  # the interrupt may have come just before; notifying twice is harmless
        if self._leader != threading.get_ident():
            return
        group, self._group = self._group, []
        was_committed = self._is_committing and not self._transaction.is_open
        self._is_committing = False
        self._transaction.roll_back()
        if not was_committed:
            self._requeue([request for request in group if not request.done and request is not own])
        for request in group:
            request.done = request.done or was_committed
            if request.done:
                request.notify()
        self._lock.release_gate_and_lock()
        self._hand_over()

    def _wake_background(self) -> None:
        """Let the background thread lead."""
        if self._background is None:
            thread = threading.Thread(target=self._run_background, name="hermes-writer", daemon=True)
            thread.start()
            self._background = thread
        with self._mutex:
            for request in self._queue:
                request.prepare_to_wait()
            self._leader = BACKGROUND
            self._wake.release()

    def _run_background(self) -> None:
        while True:
            self._wake.acquire()
            try:
                if not self._lead_in_background():
                    return
            except BaseException as exc:  # noqa: BLE001 - waiting callers must get the error, and others must lead
                self._transaction.roll_back()
                self._fail_all(exc if isinstance(exc, HermesError) else StoreError(f"the writer failed: {exc}"))
                self._lock.release_gate_and_lock()
                with self._mutex:
                    self._is_at_lock = False
                    self._stop_leading()

    def _lead_in_background(self) -> bool:
        """Lead from the background until nothing is queued; False if the writer was closed meanwhile."""
        while True:
            with self._mutex:
                if self._leader != BACKGROUND:
                    return not self._closed
                if not self._queue:
                    self._lock.release_gate_and_lock()
                    self._stop_leading()
                    return not self._closed
                self._is_at_lock = True
                self._changed.notify_all()
            self._lock.acquire()
            with self._mutex:
                self._is_at_lock = False
                if self._closed and not self._queue:
                    # No caller waits for this lock any more, and the connection may be closed.
                    self._lock.release()
                    self._lock.close()
                    return False
            try:
                self._retry_until_started()
            finally:
                self._lock.release()

    def _retry_until_started(self) -> None:
        """Try until a transaction starts, in jittered rounds, or every caller has given up."""
        attempt = 0
        while self._queue and not self._try_group():
            attempt += 1
            # BEGIN itself waits for the busy timeout; after a whole round it is tried again without a pause.
            if attempt % WRITE_MAX_RETRIES:
                time.sleep(WRITE_RETRY_MIN_S + os.urandom(1)[0] / 255 * (WRITE_RETRY_MAX_S - WRITE_RETRY_MIN_S))

    def _try_group(self) -> bool:
        """Run the queued work in one transaction; False if another writer kept it from starting."""
        try:
            self._transaction.begin()
        except apsw.Error as exc:
            if is_busy(exc):
                return False
            self._fail_all(self._explain(exc))
            return True
        try:
            # Checked now, because no process can replace the file while the lock is held.
            self._confirm()
        except HermesError as exc:
            self._transaction.roll_back()
            self._fail_all(exc)
            return True
        with self._mutex:
            self._group = list(islice(self._queue, GROUP_LIMIT))
            for _ in self._group:
                self._queue.popleft()
        finished = self._run_group(self._group)
        for request in finished:
            request.done = True
            request.notify()
        self._group = []
        self._is_committing = False
        if finished[0].error is None or any(request.error is None for request in finished):
            self._after_commit(self.view)
        return True

    def _explain(self, exc: apsw.Error) -> HermesError:
        """Why a transaction could not begin; the reason may be that the file has been replaced."""
        try:
            self._confirm()
        except HermesError as reason:
            return reason
        return self._translate(exc)

    def _run_group(self, group: list[WriteRequest]) -> list[WriteRequest]:
        """Run each request in its own savepoint and commit once; return the requests that are done."""
        is_alone = len(group) == 1
        for request in group:
            self._transaction.run(request, is_alone=is_alone, lets_interrupts_out=self._leader != BACKGROUND)
            if not self._transaction.is_open:
                request.error = request.error or StoreError(
                    "SQLite rolled back the transaction, and this write with it"
                )
                return self._fail_one(group, request)
        try:
            started = time.monotonic()
            self._is_committing = True
            self._transaction.commit()
            self._commit_s, self._group_size = time.monotonic() - started, len(group)
        except apsw.Error as exc:
            self._is_committing = False
            self._transaction.roll_back()
            group[0].error = self._translate(exc)
            return self._fail_one(group, group[0])
        return group

    def _fail_one(self, group: list[WriteRequest], failed: WriteRequest) -> list[WriteRequest]:
        """After a rollback of the whole group: one request gets the error, the others run again."""
        self._requeue([request for request in group if request is not failed])
        return [failed]

    def _requeue(self, requests: list[WriteRequest]) -> None:
        with self._mutex:
            for request in reversed(requests):
                if request not in self._queue:
                    request.prepare_to_wait()
                    self._queue.appendleft(request)

    def _fail_all(self, error: HermesError) -> None:
        with self._mutex:
            requests = [*(request for request in self._group if not request.done), *self._queue]
            self._group = []
            self._queue.clear()
        for request in requests:
            request.error = error
            request.done = True
            request.notify()
