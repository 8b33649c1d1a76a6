"""A lock that all nodes of a Galera cluster see: a row that only one process has inserted.

`GET_LOCK` and row locks hold on one node only. All nodes agree on which of two changes of one row comes first, so the
lock is such a row. Its owner keeps changing it; a row that does not change any more belongs to a dead owner.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hermes.errors import StoreBusy
from hermes.state.mysql import errors
from hermes.state.mysql.connection.statements import DriverConnection, render
from hermes.state.server.faults import ServerError, Verdict

KEY = "making_tables"
"""The key in `state_meta` that is the lock."""
STALE_S = 30.0
"""An owner that has changed nothing for this long counts as dead."""
RELEASE_S = 5.0
"""How long the owner tries to release the lock; then it becomes stale."""
PAUSE_S = 0.05

_TAKE = 'INSERT INTO state_meta ("key", value) VALUES (:key, :mine)'
_LOOK = 'SELECT value FROM state_meta WHERE "key" = :key'
_REPLACE = 'UPDATE state_meta SET value = :mine WHERE "key" = :key AND value = :seen'
_DROP = 'DELETE FROM state_meta WHERE "key" = :key AND value = :mine'


class ClusterLock:
    """The lock while this process owns it."""

    def __init__(self, connection: DriverConnection, where: str) -> None:
        self._connection = connection
        self._where = where
        self._token = secrets.token_hex(8)
        self._turn = 0

    def renew(self) -> None:
        """Show other processes that the owner is alive; raise if one of them has taken the lock."""
        values = {"key": KEY, "mine": self._value_of(self._turn + 1), "seen": self._value_of(self._turn)}
        if not self._connection.run(render(_REPLACE, values)).changed:
            raise StoreBusy(f"another process is creating the tables in {self._where} now", hint="try again")
        self._turn += 1  # only now: a failed renewal has not changed the row, and `release` looks for its value

    def acquire(self, timeout_s: float) -> None:
        """Wait until no process owns the lock, and take it."""
        deadline = time.monotonic() + timeout_s
        seen, since = "", time.monotonic()
        while not self._is_taken(seen if time.monotonic() - since > STALE_S else None):
            now = time.monotonic()
            if now > deadline:
                raise StoreBusy(f"another process has been creating the tables in {self._where} for {timeout_s:g} s")
            rows = self._connection.run(render(_LOOK, {"key": KEY})).rows
            value = str(rows[0][0]) if rows else ""
            if value != seen:
                seen, since = value, now
            time.sleep(PAUSE_S)

    def release(self) -> None:
        """Release the lock; another node may be in the way for a moment."""
        deadline = time.monotonic() + RELEASE_S
        while True:
            try:
                self._connection.run(render(_DROP, {"key": KEY, "mine": self._value_of(self._turn)}))
            except ServerError as fault:
                if errors.verdict(fault) is Verdict.NEVER or time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE_S)
            else:
                return

    def _value_of(self, turn: int) -> str:
        return f"{self._token} {turn}"

    def _is_taken(self, left_behind: str | None) -> bool:
        """Try to take the lock, also that of a dead owner; another node may have been first."""
        statement, values = (_TAKE, {}) if left_behind is None else (_REPLACE, {"seen": left_behind})
        try:
            return (
                self._connection.run(
                    render(statement, {"key": KEY, "mine": self._value_of(self._turn), **values})
                ).changed
                == 1
            )
        except ServerError as fault:
            if errors.verdict(fault) is Verdict.NEVER:
                raise
            return False


@contextmanager
def cluster_lock(connection: DriverConnection, where: str, timeout_s: float) -> Iterator[ClusterLock]:
    """Own the lock of a database, whose `state_meta` must exist."""
    lock = ClusterLock(connection, where)
    lock.acquire(timeout_s)
    try:
        yield lock
    finally:
        if connection.is_sound:
            if connection.is_in_transaction:
                connection.run("ROLLBACK")
            lock.release()
