"""An engine over pooled connections: reads and writes, retried where that is safe."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from hermes.errors import HermesError, StoreClosed, StoreReadOnly, StoreUnavailable
from hermes.state import loop_guard
from hermes.state.engine import Guard, LaneListener, Reading, Transaction
from hermes.state.server.faults import CommitUnknown, ConnectionLost, Fault, Verdict
from hermes.state.server.retries import Attempts
from hermes.state.server.transaction import ServerTransaction

if TYPE_CHECKING:
    from hermes.state.owner import Asker
    from hermes.state.rows import Row

T = TypeVar("T")
S = TypeVar("S", bound=ServerTransaction)


class Backend(Protocol[S]):
    """The operations that differ between kinds of servers."""

    @property
    def where(self) -> str:
        """The address of the database, without its password."""
        ...

    @property
    def born(self) -> str:
        """The mark that the tables got when they were created."""
        ...

    def acquire(self, deadline: float, /) -> S:
        """Return a connection for the calling thread."""
        ...

    def release(self, tx: S, /) -> None:
        """Take a connection back; one that is not sound is replaced."""
        ...

    def verdict(self, fault: Fault, /) -> Verdict:
        """Whether work that failed with this fault may be repeated."""
        ...

    def translate(self, fault: Fault, /) -> HermesError:
        """Return the error for the caller."""
        ...

    def is_committed(self, token: str, /) -> bool | None:
        """Whether a transaction was committed; None if the server does not know."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


class ServerEngine(Generic[S]):
    """Runs work on pooled connections; a read or write inside another one uses the same connection."""

    def __init__(self, backend: Backend[S], *, read_only: bool, read_timeout_s: float, write_timeout_s: float) -> None:
        self.backend = backend
        self.read_only = read_only
        self._read_timeout_s = read_timeout_s
        self._write_timeout_s = write_timeout_s
        self._active = threading.local()
        self._is_closed = False

    def read(self, work: Callable[[Reading], T], /) -> T:
        """Run `work` on a consistent view. Readers never wait for writers."""
        if loop_guard.is_on:
            loop_guard.refuse_on_loop("read", work)
        self._require_open()
        tx = self._transaction_of_this_thread()
        if tx is not None:
            return work(tx)
        return self._attempt(lambda attempts: self._read_once(work, attempts), self._read_timeout_s)

    def write(self, work: Callable[[Transaction], T], /) -> T:
        """Run `work` in a transaction; its changes are durable when this returns."""
        if loop_guard.is_on:
            loop_guard.refuse_on_loop("write", work)
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

    def append_alone(
        self, session_id: str, values: Row, preview: str | None, asker: Asker, /, guards: Sequence[Guard] = ()
    ) -> int | None:
        """Return None, unless this kind of server can store a message in one statement."""
        return None

    def add_telegram_topics(self) -> None:
        """Do nothing: a migration has created the tables."""

    def listen_lanes(self, node: str, /) -> LaneListener | None:
        """No listener, unless this kind of server can notify."""
        return None

    def close(self) -> None:
        """Close every connection; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self.backend.close()

    def _after_messages(self, newest_message: int) -> None:
        """Called after new messages have been committed."""

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
        """Commit; if the connection breaks, return the fault, to be settled after the connection is released."""
        try:
            tx.commit()
        except CommitUnknown as fault:
            return fault
        return None

    def _inside(self, tx: S, work: Callable[[S], T], *, is_writing: bool) -> T:
        """Run `work`; reads and writes inside it use this transaction."""
        outer = getattr(self._active, "tx", None), getattr(self._active, "is_writing", False)
        self._active.tx, self._active.is_writing, self._active.process = tx, is_writing, os.getpid()
        try:
            return work(tx)
        finally:
            self._active.tx, self._active.is_writing = outer

    def _is_committed(self, fault: CommitUnknown, *, adds_messages: bool) -> bool:
        """Whether a transaction was committed although its commit got no response; if not, the caller may retry.

        Where the server does not know, a retry looks for the messages by their uids.
        """
        is_committed = True if fault.token is None else self.backend.is_committed(fault.token)
        if is_committed is None and not adds_messages:
            raise StoreUnavailable(
                f"the connection broke during a commit, and it is not known whether it was done: {fault}",
                hint="check the data before you repeat the call",
            ) from fault
        return bool(is_committed)
