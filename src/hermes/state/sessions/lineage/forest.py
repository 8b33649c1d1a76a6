"""The forest: every family of more than one session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hermes.errors import UnknownSession
from hermes.state.engine import Reading
from hermes.state.operations import Operations, chunks, fetch_sessions, placeholders, read
from hermes.state.owner import EVERYBODY
from hermes.state.sessions.lineage.kinds import ChildKind, descent
from hermes.state.sessions.lineage.links import ancestors, descendants

if TYPE_CHECKING:
    from hermes.state.row_types import SessionRow


@dataclass(frozen=True, slots=True)
class FamilyTree:
    """A family: its first session and all descendants."""

    root_id: str
    member_ids: tuple[str, ...]
    """The first included, each after its parent."""
    last_active: float


class _Link(NamedTuple):
    id: str
    parent_id: str | None
    kind: str | None
    source: str
    started_at: float
    last_active: float
    archived: int


def list_families(
    store: Operations, *, hidden_sources: Sequence[str] = (), include_all: bool = False
) -> list[FamilyTree]:
    """Return the families, the one with the newest activity first.

    Sessions of hidden sources, delegates, and families whose first session is archived need `include_all`.
    """
    return read(store, lambda tx: _trees(tx, hidden_sources, include_all))


def sessions_by_id(store: Operations, session_ids: Sequence[str]) -> dict[str, SessionRow]:
    """Return sessions by id; one that does not exist is left out."""
    return read(store, lambda tx: fetch_sessions(tx, session_ids))


def family_of(store: Operations, session_id: str) -> list[SessionRow]:
    """Return all sessions of a session's family, the first one first and each after its parent."""

    def find_family(tx: Reading) -> list[SessionRow]:
        line = list(ancestors(tx, [session_id], EVERYBODY))
        if not line:
            raise UnknownSession(f"session {session_id!r} was just deleted")
        members = list(descendants(tx, line[-1:], EVERYBODY))
        rows = fetch_sessions(tx, members)
        return [rows[each] for each in members]

    return read(store, find_family)


def _trees(tx: Reading, hidden_sources: Sequence[str], include_all: bool) -> list[FamilyTree]:
    links = _links(tx, "parent_session_id IS NOT NULL")
    ids = {link.id for link in links}
    firsts = list(dict.fromkeys(link.parent_id for link in links if link.parent_id and link.parent_id not in ids))
    children: dict[str, list[str]] = defaultdict(list)
    for link in sorted(links, key=lambda link: (link.started_at, link.id)):
        if include_all or (link.kind != ChildKind.DELEGATE and link.source not in hidden_sources):
            children[link.parent_id or ""].append(link.id)
    active = {link.id: link.last_active for link in links}
    found = []
    for some in chunks(firsts):
        listed, values = placeholders("id", some)
        for first in _links(tx, f"id IN ({listed})", **values):
            if first.id in children and (include_all or not (first.archived or first.source in hidden_sources)):
                members = descent(first.id, children)
                newest = max(active.get(member, first.last_active) for member in members)
                found.append(FamilyTree(first.id, tuple(members), newest))
    return sorted(found, key=lambda tree: (tree.last_active, tree.root_id), reverse=True)


def _links(tx: Reading, condition: str, **values: object) -> list[_Link]:
    rows = tx.rows(
        f"""SELECT id, parent_session_id, child_kind, source, started_at, COALESCE(last_active, started_at), archived
            FROM sessions WHERE {condition}""",
        **values,
    )
    return [_Link(*row) for row in rows]
