"""Export: sessions with their messages, as dicts that `import_session` takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from hermes.state.engine import Reading
from hermes.state.operations import Operations, fetch_session
from hermes.state.owner import OwnerName
from hermes.state.rows import message_row
from hermes.state.sessions.lists.listing import Filter

if TYPE_CHECKING:
    from hermes.state.row_types import ExportedSession, MessageRow


class Export(Operations):
    """Operations that export sessions."""

    def export_session(
        self, session_id: str, include_inactive: bool = False, *, owner: OwnerName = None
    ) -> ExportedSession | None:
        """Return a session's columns and its `messages`, or None."""
        asker = self._asker_for(owner)

        def export(tx: Reading) -> ExportedSession | None:
            session = fetch_session(tx, session_id, asker)
            return None if session is None else {**session, "messages": _messages(tx, session_id, include_inactive)}

        return self._engine.read(export)

    def export_all(self, source: str | None = None, *, owner: OwnerName = None) -> list[ExportedSession]:
        """Return all sessions with their messages, the most recently active first."""
        return list(self.iter_export(source, owner=owner))

    def iter_export(
        self, source: str | None = None, include_inactive: bool = False, *, owner: OwnerName = None
    ) -> Iterator[ExportedSession]:
        """Yield all sessions with their messages, one after the other, so that only one is in memory."""
        asker = self._asker_for(owner)
        wanted = Filter()
        wanted.require_owner(asker)
        if source is not None:
            wanted.add("source = :source", source=source)
        # The ids are read first: activity during the export must neither repeat a session nor skip one.
        rows = self._engine.read(
            lambda tx: tx.rows(
                f"""SELECT id FROM sessions WHERE {wanted.where()}
                    ORDER BY last_active DESC, started_at DESC, id DESC""",
                **wanted.values,
            )
        )
        for (session_id,) in rows:
            exported = self.export_session(session_id, include_inactive, owner=asker)
            if exported is not None:
                yield exported


def _messages(tx: Reading, session_id: str, include_inactive: bool) -> list[MessageRow]:
    columns, rows = tx.table(
        f"SELECT * FROM messages WHERE session_id = :id {'' if include_inactive else 'AND active = 1'} ORDER BY id",
        id=session_id,
    )
    return [cast("MessageRow", message_row(columns, row)) for row in rows]
