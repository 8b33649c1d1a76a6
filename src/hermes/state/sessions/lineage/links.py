"""Lineage: the links between sessions, and the one rule that names the tip of a conversation.

A session continues another one if it is a child of the kind `compression`. From a session, the tip is found step by
step: each step goes to the continuation that started last (of equal starts, the one with the greatest id), until a
session has none. Lists, browsing, resuming and recall all use `compression_tips`, or `TIPS` inside a query.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hermes.errors import Conflict
from hermes.state.engine import Reading
from hermes.state.operations import Operations, chunks, has_messages, may_see, owner_condition, placeholders
from hermes.state.owner import EVERYBODY, Asker, OwnerName
from hermes.state.rows import optional_text
from hermes.state.sessions.lineage.kinds import ChildKind, follow

if TYPE_CHECKING:
    from hermes.state.row_types import Ancestor, Descendant

TIPS = """WITH RECURSIVE line (root, id, generation) AS (
    SELECT DISTINCT chain_root, chain_root, 0 FROM sessions WHERE chain_root IS NOT NULL
    UNION ALL
    SELECT line.root, c.id, line.generation + 1
    FROM line JOIN sessions c ON c.parent_session_id = line.id AND c.child_kind = 'compression'
    WHERE line.generation < 900 AND NOT EXISTS (
        SELECT 1 FROM sessions n WHERE n.parent_session_id = line.id AND n.child_kind = 'compression'
        AND (n.started_at > c.started_at OR (n.started_at = c.started_at AND n.id > c.id)))),
tips (root, tip) AS (
    SELECT line.root, line.id FROM line WHERE NOT EXISTS (
        SELECT 1 FROM sessions c WHERE c.parent_session_id = line.id AND c.child_kind = 'compression'))"""
"""The same rule in SQL, for queries that order all conversations by a value of their tips: it defines `tips`.

MySQL refuses to go further than 1000 generations, so the walk ends before.
"""

_COLUMNS = "id, parent_session_id, child_kind, source, model, title, started_at, COALESCE(last_active, started_at)"


class Relative(NamedTuple):
    """A session that a walk along the links has found."""

    id: str
    parent_id: str | None
    kind: str | None
    source: str
    model: str | None
    title: str | None
    started_at: float
    last_active: float


class Lineage(Operations):
    """Operations that follow the links between sessions."""

    def resolve_session_id(self, session_id_or_prefix: str, owner: OwnerName = None) -> str | None:
        """Return the session with this id, or the only one whose id begins so; None if there is none or several."""
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
        """Return the session itself if it has messages, else its nearest descendant with messages.

        Each step goes to the continuation that started last; a session without one is followed to its last-started
        child of another kind, except delegates and resets.
        """
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
                current = _resumed_child(tx, current, asker)
            return session_id

        return self._engine.read(resolve)

    def get_compression_tip(self, session_id: str, owner: OwnerName = None) -> str:
        """Return the tip of the conversation from this session on; the id itself if nothing continues it."""
        optional_text(session_id, "session_id")
        asker = self._asker_for(owner)
        return self._engine.read(lambda tx: compression_tip(tx, session_id, asker))

    def get_ancestors(self, session_id: str, owner: OwnerName = None) -> list[Ancestor]:
        """Return a session and its parents up to the first: id, title, started_at, parent_session_id."""
        optional_text(session_id, "session_id")
        asker = self._asker_for(owner)
        line = list(self._engine.read(lambda tx: ancestors(tx, [session_id], asker)).values())
        found: list[Ancestor] = [
            {"id": each.id, "title": each.title, "started_at": each.started_at, "parent_session_id": each.parent_id}
            for each in line
        ]
        if asker is not EVERYBODY and found:
            found[-1]["parent_session_id"] = None  # its parent belongs to another owner
        return found

    def get_descendants(self, session_id: str, owner: OwnerName = None) -> list[Descendant]:
        """Return a session and all its descendants, generation by generation: id, title, started_at."""
        optional_text(session_id, "session_id")
        asker = self._asker_for(owner)
        found = self._engine.read(lambda tx: descendants(tx, [session_id], asker))
        return [{"id": each.id, "title": each.title, "started_at": each.started_at} for each in found.values()]


def compression_tip(tx: Reading, session_id: str, asker: Asker) -> str:
    """Return the tip of the conversation from a session on, as far as the asker may see it."""
    root = chain_root(tx, session_id, asker)
    return session_id if root is None else compression_tips(tx, {session_id: root}, asker)[session_id]


def compression_tips(tx: Reading, roots: Mapping[str, str], asker: Asker) -> dict[str, str]:
    """Return the tip of each session, given the first session of the compression chain of each."""
    continuations: dict[str, tuple[float, str]] = {}
    for some in chunks(list(dict.fromkeys(roots.values()))):
        listed, values = placeholders("root", some)
        for child, parent, started_at in tx.rows(
            f"""SELECT id, parent_session_id, started_at FROM sessions
                WHERE chain_root IN ({listed}) AND child_kind = 'compression' {owner_condition(asker)}""",
            whose=asker.stored,
            **values,
        ):
            continuations[parent] = max(continuations.get(parent, (started_at, child)), (started_at, child))
    newest = {parent: child for parent, (_, child) in continuations.items()}
    return {session_id: follow(newest, session_id)[-1] for session_id in roots}


def ancestors(
    tx: Reading, session_ids: Sequence[str], asker: Asker, *, kinds: Collection[str] | None = None, most: int = 0
) -> dict[str, Relative]:
    """Return sessions and all their ancestors that the asker may see, by id; the parent of each comes after it.

    With `kinds`, only links of these kinds are followed. With `most`, the walk ends after so many generations.
    """
    found = _line(tx, session_ids, "s.id = line.parent_session_id", "line.child_kind", asker, kinds)

    def parents(generation: list[Relative]) -> list[Relative]:
        linked = (each.parent_id for each in generation if kinds is None or each.kind in kinds)
        return [found[each] for each in dict.fromkeys(linked) if each is not None and each in found]

    return _generations(_among(found, session_ids), parents, most)


def descendants(
    tx: Reading, session_ids: Sequence[str], asker: Asker, *, kinds: Collection[str] | None = None, most: int = 0
) -> dict[str, Relative]:
    """Return sessions and all their descendants that the asker may see, by id, generation by generation.

    With `kinds`, only children of these kinds are followed. With `most`, the walk ends after so many generations.
    """
    found = _line(tx, session_ids, "s.parent_session_id = line.id", "s.child_kind", asker, kinds)
    by_parent: dict[str | None, list[Relative]] = defaultdict(list)
    for each in sorted(found.values(), key=lambda each: (each.started_at, each.id)):
        by_parent[each.parent_id].append(each)

    def children(generation: list[Relative]) -> list[Relative]:
        below = [child for each in generation for child in by_parent[each.id] if kinds is None or child.kind in kinds]
        return sorted(below, key=lambda each: (each.started_at, each.id))

    return _generations(_among(found, session_ids), children, most)


def _line(
    tx: Reading, session_ids: Sequence[str], link: str, kind: str, asker: Asker, kinds: Collection[str] | None
) -> dict[str, Relative]:
    """Read sessions and all that links lead to, in one statement however long the line is; UNION ends rings."""
    scope = owner_condition(asker, "s.owner")
    condition, kind_values = "", dict[str, str]()
    if kinds is not None:
        listed_kinds, kind_values = placeholders("kind", list(kinds))
        condition = f"AND {kind} IN ({listed_kinds})"
    found: dict[str, Relative] = {}
    for some in chunks(list(dict.fromkeys(session_ids))):
        listed, values = placeholders("id", some)
        rows = tx.rows(
            f"""WITH RECURSIVE line (id, parent_session_id, child_kind) AS (
                    SELECT s.id, s.parent_session_id, s.child_kind FROM sessions s WHERE s.id IN ({listed}) {scope}
                    UNION
                    SELECT s.id, s.parent_session_id, s.child_kind
                    FROM line JOIN sessions s ON {link} {condition} {scope})
                SELECT {_COLUMNS} FROM sessions WHERE id IN (SELECT id FROM line)""",
            whose=asker.stored,
            **values,
            **kind_values,
        )
        found.update((row[0], Relative(*row)) for row in rows)
    return found


def _among(found: dict[str, Relative], session_ids: Sequence[str]) -> list[Relative]:
    """The found sessions among some ids, the oldest first."""
    given = (found[each] for each in dict.fromkeys(session_ids) if each in found)
    return sorted(given, key=lambda each: (each.started_at, each.id))


def children_of(tx: Reading, session_id: str, kind: ChildKind, asker: Asker) -> list[str]:
    """Return the children of one kind that the asker may see, the one that started last first."""
    children = _relatives(tx, "parent_session_id", [session_id], asker)
    return [each.id for each in reversed(children) if each.kind == kind]


def refuse_second_continuation(tx: Reading, session_id: str, asker: Asker) -> None:
    """Raise `Conflict` if a session has a compression child that the asker may see."""
    if continuations := children_of(tx, session_id, ChildKind.COMPRESSION, asker):
        tip = compression_tip(tx, session_id, asker)
        raise Conflict(
            f"session {session_id!r} is already continued in {continuations[0]!r}",
            hint=f"continue {tip!r}, the newest session of the conversation, or create a branch",
        )


def chain_root(tx: Reading, session_id: str, asker: Asker) -> str | None:
    """Return the first session of a session's compression chain; None if the asker has no such session."""
    row = tx.row(
        f"SELECT COALESCE(chain_root, id) FROM sessions WHERE id = :id {owner_condition(asker)}",
        id=session_id,
        whose=asker.stored,
    )
    return None if row is None else row[0]


def _generations(
    generation: list[Relative], next_generation: Callable[[list[Relative]], list[Relative]], most: int
) -> dict[str, Relative]:
    """Collect sessions generation by generation; a ring of sessions is followed once."""
    found: dict[str, Relative] = {}
    number = 0
    while generation and (not most or number < most):
        found.update((each.id, each) for each in generation)
        generation = [each for each in next_generation(generation) if each.id not in found]
        number += 1
    return found


def _resumed_child(tx: Reading, session_id: str, asker: Asker) -> str | None:
    """Return the child in which an empty session is resumed, None if there is none."""
    children = [
        (each.kind == ChildKind.COMPRESSION, each.started_at, each.id)
        for each in _relatives(tx, "parent_session_id", [session_id], asker)
        if each.kind not in (ChildKind.DELEGATE, ChildKind.RESET)
    ]
    return max(children)[2] if children else None


def _relatives(tx: Reading, column: str, values: Iterable[str], asker: Asker) -> list[Relative]:
    """Return the asker's sessions that have one of these values in a column, the oldest first."""
    found: list[Relative] = []
    for some in chunks(list(dict.fromkeys(values))):
        listed, bound = placeholders("value", some)
        rows = tx.rows(
            f"SELECT {_COLUMNS} FROM sessions WHERE {column} IN ({listed}) {owner_condition(asker)}",
            whose=asker.stored,
            **bound,
        )
        found += [Relative(*row) for row in rows]
    return sorted(found, key=lambda each: (each.started_at, each.id))
