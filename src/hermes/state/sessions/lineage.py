"""Lineage: from what a person names to a session, and from a session to its relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.state.engine import Reading
from hermes.state.operations import (
    Operations,
    can_see_owner,
    chunks,
    has_messages,
    may_see,
    owner_condition,
    placeholders,
)
from hermes.state.owner import EVERYBODY, Asker, OwnerName
from hermes.state.rows import optional_text
from hermes.state.sessions.kinds import ChildKind

if TYPE_CHECKING:
    from hermes.state.row_types import Ancestor, Descendant


class Lineage(Operations):
    """Operations that follow the links between sessions."""

    def resolve_session_id(self, session_id_or_prefix: str, owner: OwnerName = None) -> str | None:
        """The session with this id, or the only one whose id begins so; None if there is none or several."""
        if not session_id_or_prefix:
            return None
        asker = self._asker_for(owner)
        scope = owner_condition(asker)

        def resolve(tx: Reading) -> str | None:
            given = {"given": session_id_or_prefix, "whose": asker.stored}
            if tx.value(f"SELECT 1 FROM sessions WHERE id = :given {scope}", **given) is not None:
                return session_id_or_prefix
            found = tx.rows(
                f"SELECT id FROM sessions WHERE {tx.dialect.starts_with('id', 'given')} {scope} LIMIT 2", **given
            )
            return found[0][0] if len(found) == 1 else None

        return self._engine.read(resolve)

    def resolve_resume_session_id(self, session_id: str, owner: OwnerName = None) -> str:
        """Where a conversation goes on: the session itself if it has messages, else its nearest descendant that has."""
        optional_text(session_id, "session_id")
        if not session_id:
            return session_id
        asker = self._asker_for(owner)

        def resolve(tx: Reading) -> str:
            current: str | None = session_id
            seen: set[str] = set()
            while current is not None and current not in seen and may_see(tx, current, asker):
                if has_messages(tx, current):
                    return current
                seen.add(current)
                current = _heir(tx, current, asker)
            return session_id

        return self._engine.read(resolve)

    def get_compression_tip(self, session_id: str, owner: OwnerName = None) -> str:
        """The newest session of the compression chain that begins here; the id itself if there is none."""
        optional_text(session_id, "session_id")
        asker = self._asker_for(owner)
        return self._engine.read(lambda tx: compression_tip(tx, session_id, asker))

    def get_ancestors(self, session_id: str, owner: OwnerName = None) -> list[Ancestor]:
        """A session and its parents up to the first: id, title, started_at, parent_session_id."""
        optional_text(session_id, "session_id")
        asker = self._asker_for(owner)

        def ancestors(tx: Reading) -> list[Ancestor]:
            found: dict[str, Ancestor] = {}
            current: str | None = session_id
            while current is not None and current not in found:
                row = tx.row(
                    "SELECT id, title, started_at, parent_session_id, owner FROM sessions WHERE id = :id", id=current
                )
                if row is None or not can_see_owner(asker, row[4]):
                    break
                found[current] = {"id": row[0], "title": row[1], "started_at": row[2], "parent_session_id": row[3]}
                current = row[3]
            if asker is not EVERYBODY and found:
                last = next(reversed(found.values()))
                last["parent_session_id"] = None  # the one above it is not the asker's to know
            return list(found.values())

        return self._engine.read(ancestors)

    def get_descendants(self, session_id: str, owner: OwnerName = None) -> list[Descendant]:
        """A session and all that stem from it, generation by generation: id, title, started_at."""
        asker = self._asker_for(owner)

        def descendants(tx: Reading) -> list[Descendant]:
            scope, whose = owner_condition(asker), asker.stored
            found: dict[str, Descendant] = {}
            condition, values = "id = :id", {"id": session_id}
            generation = _generation(tx, f"{condition} {scope}", **values, whose=whose)
            while generation:
                found.update((row["id"], row) for row in generation)
                parents = [row["id"] for row in generation]
                generation = []
                for some in chunks(parents):
                    listed, values = placeholders("parent", some)
                    generation += _generation(tx, f"parent_session_id IN ({listed}) {scope}", **values, whose=whose)
                generation = [row for row in generation if row["id"] not in found]
            return list(found.values())

        return self._engine.read(descendants)


def compression_tip(tx: Reading, session_id: str, asker: Asker) -> str:
    """The last session of a compression chain that the asker may see, from one of its sessions on."""
    scope = owner_condition(asker)
    tip, seen = session_id, {session_id}
    while True:
        child = tx.value(
            f"""SELECT id FROM sessions WHERE parent_session_id = :id AND child_kind = 'compression' {scope}
                ORDER BY started_at DESC, id DESC LIMIT 1""",
            id=tip,
            whose=asker.stored,
        )
        if child is None or child in seen:
            return tip
        tip = child
        seen.add(tip)


def _heir(tx: Reading, session_id: str, asker: Asker) -> str | None:
    """The child in which an empty session goes on: a continuation before others, never a delegate or a fresh start."""
    children = tx.rows(
        f"SELECT id, child_kind, started_at FROM sessions WHERE parent_session_id = :id {owner_condition(asker)}",
        id=session_id,
        whose=asker.stored,
    )
    candidates = [
        (kind == ChildKind.COMPRESSION, started_at, child)
        for child, kind, started_at in children
        if kind not in (ChildKind.DELEGATE, ChildKind.RESET)
    ]
    return max(candidates)[2] if candidates else None


def _generation(tx: Reading, condition: str, **values: object) -> list[Descendant]:
    rows = tx.rows(f"SELECT id, title, started_at FROM sessions WHERE {condition} ORDER BY started_at, id", **values)
    return [{"id": session_id, "title": title, "started_at": started_at} for session_id, title, started_at in rows]
