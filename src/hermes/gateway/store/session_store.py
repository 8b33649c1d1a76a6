"""The store of lanes and transcripts of a gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.clock import Clock, system_clock
from hermes.gateway.config import GatewayConfig
from hermes.gateway.store.documented import DocumentedHelpers
from hermes.gateway.store.lane_operations import LaneOperations
from hermes.gateway.store.transcripts import Transcripts
from hermes.gateway.store.upkeep import Upkeep
from hermes.state.provider import SessionDBProvider


class SessionStore(DocumentedHelpers, LaneOperations, Upkeep):
    """Maps chats to sessions. A touch writes one row, whatever the number of lanes.

    The database is opened at the first use: the configured one, that of `opener`, or the given `db`. While it is
    unavailable, lanes and messages are stored in files of `sessions_dir`, and afterwards in the database, unless
    `uses_files` is false: then the operations raise. Threads may share a store.
    """

    def __init__(
        self,
        sessions_dir: Path,
        config: GatewayConfig,
        has_active_processes_fn: Callable[[str], bool] | None = None,
        *,
        opener: Callable[[], SessionDBProvider] | None = None,
        db: SessionDBProvider | None = None,
        clock: Clock = system_clock,
        uses_files: bool = True,
    ) -> None:
        super().__init__(
            sessions_dir, config, has_active_processes_fn, opener=opener, db=db, clock=clock, uses_files=uses_files
        )
        self._transcripts = Transcripts(self._connection, writes_files=config.jsonl_transcripts)

    def append_to_transcript(self, session_id: str, message: Mapping[str, Any], skip_db: bool = False) -> None:
        """Store a message of a session; `skip_db` says that the agent has stored it in the database."""
        self._transcripts.append(session_id, message, skip_db=skip_db)

    def rewrite_transcript(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Replace all messages of a session; on failure the old ones stay, and this returns False."""
        return self._transcripts.rewrite(session_id, messages)

    def load_transcript(self, session_id: str) -> list[dict[str, Any]]:
        """Return the messages of a session as a conversation."""
        return self._transcripts.load(session_id)

    def rewind_session(self, session_id: str, n: int = 1) -> dict[str, Any] | None:
        """Undo the last `n` turns of the user; return rewound_count, turns_undone and target_text, or None."""
        return self._transcripts.rewind(session_id, n)
