"""The one writer of a process: threads share its transactions, processes take turns at the lock.

A caller that finds nobody writing leads: it takes the lock, runs its own work and whatever other threads have queued
meanwhile in one transaction, and commits once for all (group commit). Whenever the first attempt would have to wait,
for another process or a foreign SQLite writer, the waiting is done by a background thread, so that every caller keeps
its own time limit and can withdraw work that has not started.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar, cast

import apsw

from hermes.errors import HermesError, StoreBusy, StoreClosed, StoreError
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.faults import is_busy
from hermes.state.sqlite.lock import WriterLock
from hermes.state.sqlite.request import Request
from hermes.state.sqlite.transaction import WritingTransaction

T = TypeVar("T")

WRITE_MAX_RETRIES = 15
WRITE_RETRY_MIN_S = 0.020
WRITE_RETRY_MAX_S = 0.150
GROUP_LIMIT = 64
SLOW_COMMIT_S = 0.001
GATHER_SHARE = 0.2
"""Where a commit is slow, a fifth of its time is well spent on waiting for the threads that will want the next one."""

BACKGROUND = 0
HEIR = -1
"""Who leads when it is no particular thread: the background thread, or the caller that was told to."""


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
        # Reentrant, because a signal handler may come back here while its thread is inside.
        self._mutex = threading.RLock()
        self._changed = threading.Condition(self._mutex)
        self._queue: deque[Request] = deque()
        self._group: list[Request] = []
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
        request = Request(work)
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
                    request.will_wait()
                self._queue.append(request)
            if request.signal is None:
                self._lead()
            if not request.done:
                self._await(request, deadline, timeout_s)
        except BaseException:
            if is_queued:
                self._resign(request)
            raise
        if request.error is not None:
            raise request.error
        return cast(T, request.result)

    def close(self, finish: Callable[[View], None]) -> bool:
        """Take no more work, let what was queued be done, and `finish` if no other process is writing.

        False if the background thread is still waiting for another process, for nobody: the lock is its to close then.
        """
        with self._mutex:
            self._closed = True
            self._wait_until_unused(None)
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
            return False  # there cannot be a lock file: whoever wrote has heard of it, and there is nothing to finish

    def is_led_here(self) -> bool:
        """Whether this thread is in the middle of a write; only a signal handler can ask that and hear yes."""
        return self._leader == threading.get_ident()

    def is_unused_within(self, timeout_s: float) -> bool:
        """Whether a moment comes soon at which nobody is using the connection."""
        with self._mutex:
            return self._wait_until_unused(timeout_s)

    def _wait_until_unused(self, timeout_s: float | None) -> bool:
        """Wait for the leader: it uses the connection until it stops leading, even after all have their answers."""
        self._is_watched = True
        return self._changed.wait_for(lambda: self._leader is None or (self._is_at_lock and not self._queue), timeout_s)

    def _await(self, request: Request, deadline: float, timeout_s: float) -> None:
        """Wait for the outcome of a queued request, and lead when told to."""
        while not request.done:
            if request.leads:
                self._leader = threading.get_ident()
                request.leads = False
                self._lead()
            elif not request.wait(max(0.0, deadline - time.monotonic())):
                if self._withdraw(request):
                    raise StoreBusy(self._why_busy(timeout_s))
                # It is in a transaction by now, so its outcome is near and must be known.
                request.wait(1.0)

    def _withdraw(self, request: Request) -> bool:
        """Take back a request that has not started."""
        with self._mutex:
            try:
                self._queue.remove(request)
            except ValueError:
                return False
            if self._is_watched:
                self._changed.notify_all()
        if request.leads:
            self._pass_on()
        return True

    def _why_busy(self, timeout_s: float) -> str:
        holder = self._lock.holder()
        if not holder:
            return f"it was not possible to write within {timeout_s:g} s"
        return f"another process has held the write lock for {timeout_s:g} s ({holder})"

    def _lead(self) -> None:
        """Make one attempt on this thread; leave whatever needs waiting to the background thread."""
        if self._commit_s > SLOW_COMMIT_S and self._group_size > 1:
            self._gather()
        if not self._lock.try_acquire():
            self._delegate()
            return
        has_started = self._try_group()
        self._lock.release()
        if has_started:
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
            heir.will_wait()
            heir.leads = True
            self._leader = HEIR
        heir.tell()

    def _stop_leading(self) -> None:
        self._leader = None
        if self._is_watched:
            self._changed.notify_all()

    def _resign(self, own: Request) -> None:
        """Take an interrupted caller out; if it led, put things right for the others, whose fault it is not."""
        self._withdraw(own)
        with self._mutex:
            heir = self._queue[0] if self._leader == HEIR and self._queue else None
        if heir is not None:
            heir.tell()  # the interrupt may have come just before; twice does no harm
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
                request.tell()
        self._lock.let_go()
        self._pass_on()

    def _delegate(self) -> None:
        """Let the background thread lead."""
        if self._background is None:
            thread = threading.Thread(target=self._run_background, name="hermes-writer", daemon=True)
            thread.start()
            self._background = thread
        with self._mutex:
            for request in self._queue:
                request.will_wait()
            self._leader = BACKGROUND
            self._wake.release()

    def _run_background(self) -> None:
        while True:
            self._wake.acquire()
            try:
                if not self._lead_patiently():
                    return
            except BaseException as exc:  # noqa: BLE001 - those who wait must hear of it, and others must be able to lead
                self._transaction.roll_back()
                self._fail_all(exc if isinstance(exc, HermesError) else StoreError(f"the writer failed: {exc}"))
                self._lock.let_go()
                with self._mutex:
                    self._is_at_lock = False
                    self._stop_leading()

    def _lead_patiently(self) -> bool:
        """Lead from the background until nothing is queued; False if the writer was closed meanwhile."""
        while True:
            with self._mutex:
                if self._leader != BACKGROUND:
                    return not self._closed
                if not self._queue:
                    self._lock.let_go()
                    self._stop_leading()
                    return not self._closed
                self._is_at_lock = True
                self._changed.notify_all()
            self._lock.acquire()
            with self._mutex:
                self._is_at_lock = False
                if self._closed and not self._queue:
                    # Nobody waited for this lock any more, and the connection may be gone.
                    self._lock.release()
                    self._lock.close()
                    return False
            try:
                self._persist()
            finally:
                self._lock.release()

    def _persist(self) -> None:
        """Try until a transaction starts, in jittered rounds, or every caller has given up."""
        attempt = 0
        while self._queue and not self._try_group():
            attempt += 1
            # After a whole round the waiting itself is what matters, so every later round is the same.
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
            # Only now, with the lock in hand, nobody can put another file in the place of this one.
            self._confirm()
        except HermesError as exc:
            self._transaction.roll_back()
            self._fail_all(exc)
            return True
        with self._mutex:
            self._group = [self._queue[i] for i in range(min(len(self._queue), GROUP_LIMIT))]
            for _ in self._group:
                self._queue.popleft()
        settled = self._run_group(self._group)
        for request in settled:
            request.done = True
            request.tell()
        self._group = []
        self._is_committing = False
        if any(request.error is None for request in settled):
            self._after_commit(self.view)
        return True

    def _explain(self, exc: apsw.Error) -> HermesError:
        """What kept a transaction from starting: perhaps only that another file is at the path by now."""
        try:
            self._confirm()
        except HermesError as reason:
            return reason
        return self._translate(exc)

    def _run_group(self, group: list[Request]) -> list[Request]:
        """Run each work under its own savepoint and commit once; answer the requests that are settled."""
        is_alone = len(group) == 1
        for request in group:
            self._transaction.run(request, is_alone=is_alone, lets_interrupts_out=self._leader != BACKGROUND)
            if not self._transaction.is_open:
                request.error = request.error or StoreError(
                    "the transaction was undone by SQLite, and with it this work"
                )
                return self._settle_one(group, request)
        try:
            started = time.monotonic()
            self._is_committing = True
            self._transaction.commit()
            self._commit_s, self._group_size = time.monotonic() - started, len(group)
        except apsw.Error as exc:
            self._is_committing = False
            self._transaction.roll_back()
            group[0].error = self._translate(exc)
            return self._settle_one(group, group[0])
        return group

    def _settle_one(self, group: list[Request], failed: Request) -> list[Request]:
        """After the whole transaction was undone: one gets the error, the others run again without it."""
        self._requeue([request for request in group if request is not failed])
        return [failed]

    def _requeue(self, requests: list[Request]) -> None:
        with self._mutex:
            for request in reversed(requests):
                if request not in self._queue:
                    request.will_wait()
                    self._queue.appendleft(request)

    def _fail_all(self, error: HermesError) -> None:
        with self._mutex:
            requests = [*(request for request in self._group if not request.done), *self._queue]
            self._group = []
            self._queue.clear()
        for request in requests:
            request.error = error
            request.done = True
            request.tell()
