"""The forest: every family of more than one session, from its first session on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hermes.state.engine import Reading
from hermes.state.operations import Operations, chunks, fetch_sessions, placeholders, read
from hermes.state.sessions.kinds import ChildKind

if TYPE_CHECKING:
    from hermes.state.row_types import SessionRow


@dataclass(frozen=True, slots=True)
class FamilyTree:
    """A family: its first session, and all that stem from it."""

    root_id: str
    member_ids: tuple[str, ...]
    """The first included, each behind the one that it stems from."""
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
    """The families, the one with the newest activity first.

    Sessions of hidden sources, delegates, and families whose first session is archived come only with `include_all`.
    """
    return read(store, lambda tx: _trees(tx, hidden_sources, include_all))


def sessions_by_id(store: Operations, session_ids: Sequence[str]) -> dict[str, SessionRow]:
    """Sessions by id; one that is not there is left out."""
    return read(store, lambda tx: fetch_sessions(tx, session_ids))


def _trees(tx: Reading, hidden_sources: Sequence[str], include_all: bool) -> list[FamilyTree]:
    links = _links(tx, "parent_session_id IS NOT NULL")
    ids = {link.id for link in links}
    firsts = list(dict.fromkeys(link.parent_id for link in links if link.parent_id and link.parent_id not in ids))
    children: dict[str | None, list[_Link]] = defaultdict(list)
    for link in sorted(links, key=lambda link: (link.started_at, link.id)):
        if include_all or (link.kind != ChildKind.DELEGATE and link.source not in hidden_sources):
            children[link.parent_id].append(link)
    found = []
    for some in chunks(firsts):
        listed, values = placeholders("id", some)
        for first in _links(tx, f"id IN ({listed})", **values):
            if first.id in children and (include_all or not (first.archived or first.source in hidden_sources)):
                members = list(_descent(first, children))
                newest = max(member.last_active for member in members)
                found.append(FamilyTree(first.id, tuple(member.id for member in members), newest))
    return sorted(found, key=lambda tree: (tree.last_active, tree.root_id), reverse=True)


def _links(tx: Reading, condition: str, **values: object) -> list[_Link]:
    rows = tx.rows(
        f"""SELECT id, parent_session_id, child_kind, source, started_at, COALESCE(last_active, started_at), archived
            FROM sessions WHERE {condition}""",
        **values,
    )
    return [_Link(*row) for row in rows]


def _descent(first: _Link, children: dict[str | None, list[_Link]]) -> Iterator[_Link]:
    """A session and all that stem from it, generation by generation; whoever made a ring of them is not followed."""
    generation, seen = [first], {first.id}
    while generation:
        yield from generation
        generation = [link for each in generation for link in children.get(each.id, ()) if link.id not in seen]
        seen.update(link.id for link in generation)
