"""Handoff: move a conversation from one platform to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hermes.errors import InvalidValue
from hermes.state.engine import Reading
from hermes.state.operations import Operations, hide_foreign_links, owner_condition
from hermes.state.owner import OwnerName
from hermes.state.rows import require_identifier, session_row

if TYPE_CHECKING:
    from hermes.state.row_types import HandoffState, SessionRow

MAX_ERROR_LENGTH = 500


class Handoffs(Operations):
    """Operations on the handoff of a session: none, pending, running, then completed or failed."""

    def request_handoff(self, session_id: str, platform: str) -> bool:
        """Request that a platform takes over a session; return False if it is unknown or already requested."""
        require_identifier(platform, "platform")
        return self._move(
            session_id,
            "'pending', handoff_platform = :platform, handoff_error = NULL",
            "AND (handoff_state IS NULL OR handoff_state IN ('completed', 'failed'))",
            platform=platform,
        )

    def claim_handoff(self, session_id: str) -> bool:
        """Claim a pending handoff; only one caller gets True."""
        return self._move(session_id, "'running'", "AND handoff_state = 'pending'")

    def complete_handoff(self, session_id: str) -> bool:
        """Mark a handoff as completed."""
        return self._move(session_id, "'completed', handoff_error = NULL")

    def fail_handoff(self, session_id: str, error: str) -> bool:
        """Mark a handoff as failed, with the reason."""
        if not isinstance(error, str):
            raise InvalidValue(f"error must be a string, not {type(error).__name__}")
        return self._move(session_id, "'failed', handoff_error = :error", error=error[:MAX_ERROR_LENGTH])

    def get_handoff_state(self, session_id: str, owner: OwnerName = None) -> HandoffState | None:
        """Return a session's handoff as state, platform and error; None for an unknown session."""
        asker = self._asker_for(owner)
        columns, rows = self._engine.read(
            lambda tx: tx.table(
                f"""SELECT handoff_state AS state, handoff_platform AS platform, handoff_error AS error
                    FROM sessions WHERE id = :id {owner_condition(asker)}""",
                id=session_id,
                whose=asker.stored,
            )
        )
        return cast("HandoffState", session_row(columns, rows[0])) if rows else None

    def list_pending_handoffs(self, owner: OwnerName = None) -> list[SessionRow]:
        """Return the sessions with a pending handoff, oldest first."""
        asker = self._asker_for(owner)

        def pending(tx: Reading) -> list[SessionRow]:
            columns, rows = tx.table(
                f"""SELECT * FROM sessions WHERE handoff_state = 'pending' {owner_condition(asker)}
                    ORDER BY started_at, id""",
                whose=asker.stored,
            )
            sessions = hide_foreign_links(tx, [session_row(columns, row) for row in rows], asker)
            return cast("list[SessionRow]", sessions)

        return self._engine.read(pending)

    def _move(self, session_id: str, state: str, condition: str = "", **values: Any) -> bool:
        return self._engine.write(
            lambda tx: (
                tx.run(
                    f"UPDATE sessions SET handoff_state = {state} WHERE id = :id {condition}", id=session_id, **values
                )
                == 1
            )
        )
