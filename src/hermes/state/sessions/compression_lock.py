"""Compression locks: one at a time may compress a session, and a dead one loses the right."""

from __future__ import annotations

from hermes.errors import InvalidValue
from hermes.state.engine import Reading, Transaction
from hermes.state.operations import Operations, may_see
from hermes.state.owner import OwnerName
from hermes.state.rows import optional_number, require_identifier

COMPRESSION_LOCK_TTL_S = 300.0

_INSERT = """INSERT INTO compression_locks (session_id, holder, acquired_at, expires_at)
             VALUES (:id, :holder, :now, :until)"""
_UPDATE = """UPDATE compression_locks SET holder = :holder, acquired_at = :now, expires_at = :until
             WHERE session_id = :id"""


class CompressionLocks(Operations):
    """Operations on the locks that keep two compressions of one session apart."""

    def try_acquire_compression_lock(
        self, session_id: str, holder: str, ttl_seconds: float = COMPRESSION_LOCK_TTL_S
    ) -> bool:
        """Take the lock, or take it again for longer; False while another holds it."""
        if not session_id:
            return False
        require_identifier(holder, "holder")
        now = self._clock()
        until = now + _seconds(ttl_seconds)

        def acquire(tx: Transaction) -> bool:
            if not may_see(tx, session_id, self._asker):
                return False
            held = tx.row(
                f"SELECT holder, expires_at FROM compression_locks WHERE session_id = :id {tx.dialect.for_update}",
                id=session_id,
            )
            if held is not None and held[0] != holder and held[1] >= now:
                return False
            # There was no row to hold: of two who insert one at once, the second has to look again.
            tx.run(_INSERT if held is None else _UPDATE, id=session_id, holder=holder, now=now, until=until)
            return True

        return self._engine.write(acquire)

    def renew_compression_lock(self, session_id: str, holder: str, ttl_seconds: float = COMPRESSION_LOCK_TTL_S) -> bool:
        """Keep a lock for longer; False if it is no longer held."""
        now = self._clock()
        until = now + _seconds(ttl_seconds)
        return self._engine.write(
            lambda tx: (
                may_see(tx, session_id, self._asker)
                and tx.run(
                    """UPDATE compression_locks SET expires_at = :until
                       WHERE session_id = :id AND holder = :holder AND expires_at >= :now""",
                    id=session_id,
                    holder=holder,
                    now=now,
                    until=until,
                )
                == 1
            )
        )

    def release_compression_lock(self, session_id: str, holder: str) -> None:
        """Give the lock back; somebody else's stays."""

        def release(tx: Transaction) -> None:
            if may_see(tx, session_id, self._asker):
                tx.run(
                    "DELETE FROM compression_locks WHERE session_id = :id AND holder = :holder",
                    id=session_id,
                    holder=holder,
                )

        self._engine.write(release)

    def get_compression_lock_holder(self, session_id: str, owner: OwnerName = None) -> str | None:
        """Who is compressing a session, or None."""
        now, asker = self._clock(), self._asker_for(owner)

        def holder(tx: Reading) -> str | None:
            found = tx.value(
                "SELECT holder FROM compression_locks WHERE session_id = :id AND expires_at >= :now",
                id=session_id,
                now=now,
            )
            return None if found is None or not may_see(tx, session_id, asker) else str(found)

        return self._engine.read(holder)


def _seconds(ttl_seconds: float) -> float:
    seconds = optional_number(ttl_seconds, "ttl_seconds")
    if seconds is None:
        raise InvalidValue("ttl_seconds must be a number of seconds")
    return seconds
