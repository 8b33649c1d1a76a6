"""MySQL or MariaDB as an engine of the session store."""

from __future__ import annotations

import time
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

from hermes.errors import HermesError
from hermes.home import get_hermes_home
from hermes.log import warn
from hermes.state.engine import CATCH_UP, Capability, Index, Keeper, Reading, Transaction
from hermes.state.mysql import filling
from hermes.state.mysql.backend import MySQLBackend
from hermes.state.mysql.filling import DUE, Done, Filler
from hermes.state.mysql.session import MySQLSession
from hermes.state.server.engine import ServerEngine
from hermes.state.server.follower import Follower
from hermes.state.spool import Spool

if TYPE_CHECKING:
    from hermes.config import SessionDBConfig

READ_TIMEOUT_S = 30.0
"""How long a read waits for a connection."""
CLOSE_BATCHES = 16
MANY, PAUSE_S = 4_096, 0.05
"""The index follows when no message has come for a while, or when so many wait that searches would be slowed down."""


class MySQLEngine(ServerEngine[MySQLSession]):
    """One database, as one store uses it."""

    name = "mysql"

    def __init__(self, backend: MySQLBackend, settings: SessionDBConfig, *, read_only: bool) -> None:
        super().__init__(
            backend, read_only=read_only, read_timeout_s=READ_TIMEOUT_S, write_timeout_s=settings.write_timeout_s
        )
        self._database = backend
        self._filler = Filler()
        self._follower = Follower(self._follow_in_a_pause, "hermes-index")
        self._newest = self._indexed_upto = 0
        """The newest message of this process, and up to where the index was when this process last looked."""
        self._damaged_epoch: int | None = None
        self._is_searched = False
        """Whether somebody looks for messages while they come, and would have to read those that wait."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this store can do that not every one can."""
        return frozenset({Capability.SERVER})

    @cached_property
    def spool(self) -> Spool:
        """Where messages wait that cannot be stored now."""
        name = blake2b(self._database.where.encode(), digest_size=6).hexdigest()
        return Spool(get_hermes_home() / f"{self.name}-{name}.spool")

    @cached_property
    def index(self) -> Index:
        """How messages are found in it."""
        from hermes.state.mysql.index import MySQLIndex

        return MySQLIndex()

    @cached_property
    def keeper(self) -> Keeper:
        """Who keeps it in order."""
        from hermes.state.mysql.keeper import MySQLKeeper

        return MySQLKeeper(self.catch_up, self._database.run_alone)

    def heal_index(self, epoch: int, /) -> None:
        """Have an index that was found damaged rebuilt in the background, unless that has been done since."""
        if not self.read_only:
            self._damaged_epoch = None if epoch == CATCH_UP else epoch
            self._is_searched = True
            self._follower.wake()

    def catch_up(self) -> None:
        """Index everything that waits, and forget what was only said in deleted messages."""
        deadline = time.monotonic() + self._write_timeout_s
        while (done := self._fill()).has_more or (not done.upto and time.monotonic() < deadline):
            if not done.upto:
                time.sleep(PAUSE_S)  # somebody else is at it

    def describe(self) -> dict[str, Any]:
        """What there is to know about the server, the connections to it and the index."""
        return {
            "database": self._database.where,
            "server": self._database.server.name,
            "pool": self._database.pool.stats(),
            "waiting_for_index": self.read(_waiting),
        }

    def close(self) -> None:
        """Finish the index if nobody else is at it, then let go of every connection."""
        if self._is_closed:
            return
        self._follower.close()
        try:
            for _ in range(CLOSE_BATCHES if self._newest > self._indexed_upto else 0):
                if not self._fill().has_more:
                    break
        except HermesError as exc:
            warn(__name__, "the search index of %s will be brought up to date later: %s", self._database.where, exc)
        super().close()

    def _after_messages(self, newest_message: int) -> None:
        self._newest = max(self._newest, newest_message)
        if self._newest - self._indexed_upto >= DUE:
            self._follower.wake()

    def _follow_in_a_pause(self) -> bool:
        """Let a burst of messages pass, so that it is not slowed down; but not for long."""
        seen = 0
        while seen < self._newest < self._indexed_upto + MANY and not self._is_searched:
            seen = self._newest
            time.sleep(PAUSE_S)
        self._is_searched = False
        return self._follow()

    def _follow(self) -> bool:
        """Keep the index close behind the messages; answers whether there is more to be done."""
        epoch, self._damaged_epoch = self._damaged_epoch, None
        if epoch is not None and self.write(lambda tx: filling.start_over(cast(MySQLSession, tx), epoch)):
            warn(__name__, "the search index of %s is damaged and is being rebuilt", self._database.where)
        return self._fill().has_more

    def _fill(self) -> Done:
        done = self.write(self._fill_batch)
        if done.upto:
            self._filler.remember(done)
        # Where somebody else is at it, another look is due after some more messages.
        self._indexed_upto = max(done.upto, self._newest - DUE // 2)
        return done

    def _fill_batch(self, tx: Transaction) -> Done:
        return self._filler.batch(cast(MySQLSession, tx))


def _waiting(tx: Reading) -> int:
    return filling.waiting(cast(MySQLSession, tx))
