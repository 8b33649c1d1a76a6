"""An engine over connections that are lent: reads and writes, tried again where that is safe."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, cast

from hermes.errors import HermesError, StoreClosed, StoreReadOnly, StoreUnavailable
from hermes.state.engine import Reading, Transaction
from hermes.state.server.faults import CommitUnknown, ConnectionLost, Fault, Verdict
from hermes.state.server.retries import Attempts
from hermes.state.server.transaction import ServerTransaction

T = TypeVar("T")
S = TypeVar("S", bound=ServerTransaction)


class Backend(Protocol[S]):
    """What is particular to one kind of server."""

    def acquire(self, deadline: float, /) -> S:
        """A connection for the calling thread."""
        ...

    def release(self, tx: S, /) -> None:
        """Take a connection back; one that is not sound is replaced."""
        ...

    def verdict(self, fault: Fault, /) -> Verdict:
        """Whether work that failed like this may be done again."""
        ...

    def translate(self, fault: Fault, /) -> HermesError:
        """What a failure means for the caller."""
        ...

    def is_committed(self, token: str, /) -> bool | None:
        """Whether a transaction was committed; None: the server cannot tell for sure."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


class ServerEngine(Generic[S]):
    """Runs work on lent connections; a read or write inside of another needs no second connection."""

    def __init__(self, backend: Backend[S], *, read_only: bool, read_timeout_s: float, write_timeout_s: float) -> None:
        self.backend = backend
        self.read_only = read_only
        self._read_timeout_s = read_timeout_s
        self._write_timeout_s = write_timeout_s
        self._active = threading.local()
        self._is_closed = False

    def read(self, work: Callable[[Reading], T], /) -> T:
        """Run `work` on a consistent view. Readers never wait for writers."""
        self._require_open()
        tx = self._transaction_of_this_thread()
        if tx is not None:
            return work(tx)
        return self._attempt(lambda attempts: self._read_once(work, attempts), self._read_timeout_s)

    def write(self, work: Callable[[Transaction], T], /) -> T:
        """Run `work` in a transaction; what it did is durable when this returns."""
        self._require_open()
        if self.read_only:
            raise StoreReadOnly("this store was opened for reading only", hint="open it without read_only")
        tx = self._transaction_of_this_thread()
        if tx is not None and self._active.is_writing:
            return work(tx)
        result, newest_message = self._attempt(lambda deadline: self._write_once(work, deadline), self._write_timeout_s)
        if newest_message:
            self._after_messages(newest_message)
        return result

    def close(self) -> None:
        """Let go of every connection; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self.backend.close()

    def _after_messages(self, newest_message: int) -> None:
        """Hear of new messages once they are durable."""

    def _require_open(self) -> None:
        if self._is_closed:
            raise StoreClosed

    def _transaction_of_this_thread(self) -> S | None:
        tx = cast("S | None", getattr(self._active, "tx", None))
        # A process that was forked in the middle of a transaction must leave it to its parent.
        return tx if tx is None or self._active.process == os.getpid() else None

    def _attempt(self, once: Callable[[Attempts], T], timeout_s: float) -> T:
        attempts = Attempts(time.monotonic() + timeout_s)
        while True:
            self._require_open()
            try:
                return once(attempts)
            except Fault as fault:
                pause = attempts.pause(self.backend.verdict(fault), time.monotonic())
                if pause is None:
                    raise self.backend.translate(fault) from fault
            time.sleep(pause)

    def _read_once(self, work: Callable[[Reading], T], attempts: Attempts) -> T:
        tx = self.backend.acquire(attempts.deadline)
        try:
            tx.begin(read_only=True, timeout_s=None)
            return self._inside(tx, work, is_writing=False)
        finally:
            tx.roll_back()
            self.backend.release(tx)

    def _write_once(self, work: Callable[[Transaction], T], attempts: Attempts) -> tuple[T, int]:
        tx = self.backend.acquire(attempts.deadline)
        try:
            tx.begin(read_only=False, timeout_s=self._write_timeout_s, is_repeat=attempts.may_repeat)
            result = self._inside(tx, work, is_writing=True)
            unsettled = self._commit(tx)
        finally:
            tx.roll_back()
            self.backend.release(tx)
        if unsettled is not None and not self._is_committed(unsettled, adds_messages=tx.newest_message > 0):
            attempts.may_repeat = attempts.may_repeat or tx.newest_message > 0
            raise ConnectionLost(str(unsettled)) from unsettled
        return result, tx.newest_message

    def _commit(self, tx: S) -> CommitUnknown | None:
        """Commit; answers what is to be settled once the broken connection is given back."""
        try:
            tx.commit()
        except CommitUnknown as fault:
            return fault
        return None

    def _inside(self, tx: S, work: Callable[[S], T], *, is_writing: bool) -> T:
        """Run `work` so that reads and writes within it find this transaction."""
        outer = getattr(self._active, "tx", None), getattr(self._active, "is_writing", False)
        self._active.tx, self._active.is_writing, self._active.process = tx, is_writing, os.getpid()
        try:
            return work(tx)
        finally:
            self._active.tx, self._active.is_writing = outer

    def _is_committed(self, fault: CommitUnknown, *, adds_messages: bool) -> bool:
        """Whether a transaction was committed whose commit was not answered; if not, it may be tried again.

        Where the server cannot tell, messages are looked for by their uids when they are stored again.
        """
        is_committed = True if fault.token is None else self.backend.is_committed(fault.token)
        if is_committed is None and not adds_messages:
            raise StoreUnavailable(
                f"the connection broke during a commit, and it cannot be told whether it was done: {fault}",
                hint="look before you repeat the call",
            ) from fault
        return bool(is_committed)
