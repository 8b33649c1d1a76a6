"""Rules that select sessions for deletion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes.state.engine import Reading
from hermes.state.maintenance.deletion import add_delegates
from hermes.state.operations import chunks, placeholders

HAS_MESSAGES_OR_PIN = "r.pinned = 1 OR EXISTS (SELECT 1 FROM messages m WHERE m.session_id = r.id)"
"""A delegate that keeps its empty parent session from deletion."""


class DeletionRule:
    """A condition that selects sessions for deletion and can be checked again."""

    def __init__(self, condition: str, *, delegate: str | None = None, **values: Any) -> None:
        self._condition = condition
        self._delegate = delegate
        self._values = values

    def find(self, tx: Reading, among: Sequence[str] | None = None) -> list[str]:
        """Return the ids that meet the condition, longest idle first, of all sessions or only `among` some."""
        listed, values = placeholders("id", among or ())
        rows = tx.rows(
            f"""SELECT s.id FROM sessions s WHERE {self._condition} {"" if among is None else f"AND s.id IN ({listed})"}
                ORDER BY s.last_active, s.id""",
            **self._values,
            **values,
        )
        kept = self._kept_by_delegates(tx, [row[0] for row in rows])
        return [row[0] for row in rows if row[0] not in kept]

    def _kept_by_delegates(self, tx: Reading, session_ids: Sequence[str]) -> set[str]:
        """Return the sessions to keep because a delegate, which would be deleted with them, must stay."""
        if self._delegate is None:
            return set()
        kept = set()
        for parent in _with_delegate_children(tx, session_ids):
            for some in chunks(add_delegates(tx, [parent])[1:]):
                listed, values = placeholders("id", some)
                must_stay = f"SELECT 1 FROM sessions r WHERE r.id IN ({listed}) AND ({self._delegate}) LIMIT 1"
                if tx.value(must_stay, **self._values, **values) is not None:
                    kept.add(parent)
        return kept


EMPTY = DeletionRule(
    """message_count = 0 AND ended_at IS NOT NULL AND archived = 0 AND pinned = 0
       AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id)""",
    delegate=HAS_MESSAGES_OR_PIN,
)


def _with_delegate_children(tx: Reading, session_ids: Sequence[str]) -> list[str]:
    parents: list[str] = []
    for some in chunks(session_ids):
        listed, values = placeholders("parent", some)
        rows = tx.rows(
            f"""SELECT DISTINCT parent_session_id FROM sessions
                WHERE parent_session_id IN ({listed}) AND child_kind = 'delegate'""",
            **values,
        )
        parents += [row[0] for row in rows]
    return parents
