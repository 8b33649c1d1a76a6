"""The end of a session: memories are saved, hooks run, and what the agent keeps for it is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes.gateway.store.lane_entries import entry_from_row
from hermes.gateway.upkeep.hook_files import FINALIZE
from hermes.state.owner import Owner, owner_from_column

if TYPE_CHECKING:
    from hermes.gateway.entry import SessionEntry
    from hermes.gateway.store.aio import AsyncSessionStore
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.lanes.types import LaneRow, Lease

SESSION_EXPIRED: Final = "session_expired"
NEW_SESSION: Final = "new_session"
"""Why a session ends. Memories are saved only before a session that ends by itself: a user who sends /new waits."""


class FinalizingBrain(Protocol):
    """What the end of a session needs of a brain."""

    async def save_memories(
        self, session_key: str, session_id: str, owner: Owner, lease: Lease, seconds: float
    ) -> bool:
        """Let the model save what should be remembered; return whether it has."""

    async def end_session(self, session_key: str, session_id: str) -> None:
        """Drop what is kept for a session."""


class EmitHooks(Protocol):
    """Runs the hooks of an event."""

    async def __call__(self, event: str, context: Mapping[str, Any]) -> None:
        """Run the hooks; this never raises."""


class Finalizer:
    """Ends sessions, each once: the watcher of expired sessions and the reset of a lane share it."""

    def __init__(
        self,
        store: AsyncSessionStore,
        db: AsyncSessionDB,
        brain: FinalizingBrain,
        emit: EmitHooks,
        *,
        memory_s: float,
    ) -> None:
        self._store = store
        self._db = db
        self._brain = brain
        self._emit = emit
        self._memory_s = memory_s

    async def finalize_session(self, entry: SessionEntry, reason: str, lease: Lease) -> None:
        """Finalize the session of a lane and note that in the lane; the caller holds the lease.

        Nothing happens if the session is finalized, or if the lane uses another one by now. A node that dies in the
        middle leaves the rest to the next one, so a hook can run twice after a crash, but never for two nodes at once.
        """
        row = await self._db.lanes.get(entry.session_key)
        if row is None or row["session_id"] != entry.session_id or row["expiry_finalized"]:
            return
        if reason == SESSION_EXPIRED:
            await self._save_memories(row, lease)
        await self._emit(FINALIZE, finalize_context(row, reason))
        await self._brain.end_session(row["session_key"], row["session_id"])
        await self._store.set_expiry_finalized(entry_from_row(row))

    async def _save_memories(self, row: LaneRow, lease: Lease) -> None:
        # A session without an owner is the terminal's: no chat writes into its notes.
        if self._memory_s > 0 and row["message_count"] and row["owner"] is not None:
            owner = owner_from_column(row["owner"])
            await self._brain.save_memories(row["session_key"], row["session_id"], owner, lease, self._memory_s)


def finalize_context(row: LaneRow, reason: str) -> dict[str, Any]:
    """Return what hooks learn about the end of a session."""
    origin = row["origin"] or {}
    return {
        "session_key": row["session_key"],
        "session_id": row["session_id"],
        "platform": row["platform"],
        "chat_type": row["chat_type"],
        "chat_id": origin.get("chat_id"),
        "thread_id": origin.get("thread_id"),
        "user_id": origin.get("user_id"),
        "reason": reason,
    }
