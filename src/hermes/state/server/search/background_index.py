"""An engine that updates its search index in the background, a batch at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Generic, Protocol, TypeVar, cast

from hermes.errors import HermesError
from hermes.home import get_hermes_home
from hermes.log import warn
from hermes.state.engine import CATCH_UP, Reading, Transaction
from hermes.state.indexing.background_worker import BackgroundWorker
from hermes.state.messages.spool import Spool
from hermes.state.server.engine import Backend, ServerEngine
from hermes.state.server.transaction import ServerTransaction

READ_TIMEOUT_S = 30.0
"""How long a read waits for a connection."""
CLOSE_MESSAGES = 8_192
"""How many messages a closing store indexes; others are left to the next process."""
MANY, PAUSE_S = 4_096, 0.05
"""A batch runs when no message has come for a while, when this many wait, or when a search had to read too many."""


class Progress(Protocol):
    """The result of a batch."""

    @property
    def messages(self) -> int:
        """The number of messages that it indexed."""
        ...

    @property
    def upto(self) -> int | None:
        """The id up to which messages are indexed now; None if another process is indexing."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether there is more to index."""
        ...


S = TypeVar("S", bound=ServerTransaction)
S_contra = TypeVar("S_contra", bound=ServerTransaction, contravariant=True)
P = TypeVar("P", bound=Progress)
R = TypeVar("R")


class MessageIndexer(Protocol[S_contra, P]):
    """The indexing operations of one kind of server."""

    due: int
    """This many waiting messages start a batch; each search reads fewer of them directly."""

    def batch(self, tx: S_contra, /) -> P:
        """Index the next messages in the surrounding transaction, unless another process is indexing."""
        ...

    def remember_words(self, done: P, /) -> None:
        """Remember the words of a batch that is committed now."""
        ...

    def clear_index(self, tx: S_contra, epoch: int, /) -> bool:
        """Empty the index in the surrounding transaction; return False if another process did so since `epoch`."""
        ...

    def waiting(self, tx: S_contra, /) -> int:
        """The approximate number of messages that are not indexed yet."""
        ...


class IndexedEngine(ServerEngine[S], Generic[S, P]):
    """One database, as one store uses it, with an index that is never far behind."""

    name: str

    def __init__(
        self, backend: Backend[S], indexer: MessageIndexer[S, P], *, read_only: bool, write_timeout_s: float
    ) -> None:
        super().__init__(backend, read_only=read_only, read_timeout_s=READ_TIMEOUT_S, write_timeout_s=write_timeout_s)
        self._indexer = indexer
        self._worker = BackgroundWorker(self._index_when_quiet, "hermes-index")
        self._newest = self._indexed_upto = 0
        """The newest message of this process, and the mark of the index when this process last read it."""
        self._damaged_epoch: int | None = None
        self._is_searched = False
        """Whether searches run while messages are added, and would have to read those that wait."""

    @cached_property
    def spool(self) -> Spool:
        """The spool: messages that cannot be stored now."""
        # The displayed address may be the same for two schemas of a database, or for two servers.
        name = blake2b(f"{self.backend.where} {self.backend.born}".encode(), digest_size=6).hexdigest()
        return Spool(get_hermes_home() / f"{self.name}-{name}.spool")

    def heal_index(self, epoch: int, /) -> None:
        """Rebuild a damaged index in the background, unless another process has done so since."""
        if not self.read_only:
            self._damaged_epoch = None if epoch == CATCH_UP else epoch
            self._is_searched = True
            self._worker.wake()

    def catch_up(self) -> None:
        """Index all waiting messages, and forget the words of deleted messages."""
        deadline = time.monotonic() + self._write_timeout_s
        while (done := self._index_batch()).has_more or (done.upto is None and time.monotonic() < deadline):
            if done.upto is None:
                time.sleep(PAUSE_S)  # another process is indexing

    def waiting_for_index(self) -> int:
        """The approximate number of messages that searches have to read directly."""
        return self.read(self._within(self._indexer.waiting))

    def close(self) -> None:
        """Finish the index if no other process is indexing, then close every connection."""
        if self._is_closed:
            return
        self._worker.close()
        try:
            messages = 0 if self._newest > self._indexed_upto else CLOSE_MESSAGES
            while messages < CLOSE_MESSAGES and (done := self._index_batch()).has_more:
                messages += max(1, done.messages)
        except HermesError as exc:
            warn(__name__, "the search index of %s will be updated later: %s", self.backend.where, exc)
        super().close()

    def _after_messages(self, newest_message: int) -> None:
        self._newest = max(self._newest, newest_message)
        if self._newest - self._indexed_upto >= self._indexer.due:
            self._worker.wake()

    def _index_when_quiet(self) -> bool:
        """Wait until a burst of messages is over, so that it is not slowed down; but not for long."""
        newest_before = 0
        while newest_before < self._newest < self._indexed_upto + MANY and not self._is_searched:
            newest_before = self._newest
            time.sleep(PAUSE_S)
        self._is_searched = False
        return self._index_waiting()

    def _index_waiting(self) -> bool:
        """Index a batch, or rebuild a damaged index; return whether there is more to do."""
        epoch, self._damaged_epoch = self._damaged_epoch, None
        if epoch is not None and self.write(self._within(lambda tx: self._indexer.clear_index(tx, epoch))):
            warn(__name__, "the search index of %s is damaged and is being rebuilt", self.backend.where)
        return self._index_batch().has_more

    def _index_batch(self) -> P:
        done = self.write(self._within(self._indexer.batch))
        if done.upto is not None:
            self._indexer.remember_words(done)
        # If another process is indexing, the next attempt comes after some more messages.
        self._indexed_upto = max(done.upto or 0, self._newest - self._indexer.due // 2)
        return done

    def _within(self, work: Callable[[S], R]) -> Callable[[Reading | Transaction], R]:
        """Adapt work on this server's transactions to callers that know only the protocol."""
        return lambda tx: work(cast(S, tx))
