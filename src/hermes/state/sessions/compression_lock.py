"""Compression locks: only one caller at a time may compress a session, and the lock of a dead one expires."""

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
    """Operations on the locks that prevent two compressions of one session at once."""

    def try_acquire_compression_lock(
        self, session_id: str, holder: str, ttl_seconds: float = COMPRESSION_LOCK_TTL_S
    ) -> bool:
        """Acquire the lock, or extend it; return False while another caller holds it."""
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
            # Without a row nothing is locked: if two callers insert at once, the second one retries.
            tx.run(_INSERT if held is None else _UPDATE, id=session_id, holder=holder, now=now, until=until)
            return True

        return self._engine.write(acquire)

    def renew_compression_lock(self, session_id: str, holder: str, ttl_seconds: float = COMPRESSION_LOCK_TTL_S) -> bool:
        """Extend a lock; return False if it is no longer held."""
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
        """Release the lock; another holder's lock stays."""

        def release(tx: Transaction) -> None:
            if may_see(tx, session_id, self._asker):
                tx.run(
                    "DELETE FROM compression_locks WHERE session_id = :id AND holder = :holder",
                    id=session_id,
                    holder=holder,
                )

        self._engine.write(release)

    def get_compression_lock_holder(self, session_id: str, owner: OwnerName = None) -> str | None:
        """Return the holder of a session's compression lock, or None."""
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
