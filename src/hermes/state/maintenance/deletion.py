"""Taking sessions out of the store, with everything that hangs on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hermes.state.engine import Reading, Transaction
from hermes.state.operations import chunks, placeholders
from hermes.state.owner import EVERYBODY
from hermes.state.sessions.kinds import ChildKind, is_listed
from hermes.state.sessions.records import recompute_chain_activity, set_chain_activity


class Deleted(NamedTuple):
    """What a deletion took."""

    session_ids: list[str]
    """All that went, the delegates of those that were named included."""
    messages: int
    """How many messages they had, rewound ones included."""


def delete_rows(tx: Transaction, session_ids: Sequence[str]) -> Deleted:
    """Delete sessions with everything that hangs on them."""
    deleted_ids = add_delegates(tx, session_ids)
    delete = tx.dialect.delete_where_in
    messages = 0
    for some in chunks(deleted_ids):
        listed, values = placeholders("id", some)
        _release_children(tx, listed, values, set(deleted_ids))
        tx.run(f"UPDATE {tx.dialect.by_key('sessions')} SET message_count = 0 WHERE id IN ({listed})", **values)
        messages += tx.run(delete("messages", "session_id", values), **values)
        tx.run(delete("compression_locks", "session_id", values), **values)
    roots = _chain_roots(tx, deleted_ids)
    for some in chunks(deleted_ids):
        _, values = placeholders("id", some)
        tx.run(delete("sessions", "id", values), **values)
    for root in roots:
        recompute_chain_activity(tx, root, EVERYBODY)
    return Deleted(deleted_ids, messages)


def add_delegates(tx: Reading, session_ids: Sequence[str]) -> list[str]:
    """Sessions and the delegates that worked for them, at any depth, with the delegates' continuations."""
    deleted_ids = dict.fromkeys(session_ids)
    generation, kinds = list(session_ids), "'delegate'"
    while generation:
        found: list[str] = []
        for some in chunks(generation):
            listed, values = placeholders("parent", some)
            found += [
                row[0]
                for row in tx.rows(
                    f"SELECT id FROM sessions WHERE parent_session_id IN ({listed}) AND child_kind IN ({kinds})",
                    **values,
                )
            ]
        kinds = "'delegate', 'compression'"
        generation = [each for each in found if each not in deleted_ids]
        deleted_ids |= dict.fromkeys(generation)
    return list(deleted_ids)


def _chain_roots(tx: Reading, deleted_ids: Sequence[str]) -> list[str]:
    """The chains that lose a session but not their first."""
    roots: set[str] = set()
    for some in chunks(deleted_ids):
        listed, values = placeholders("id", some)
        rows = tx.rows(f"SELECT chain_root FROM sessions WHERE id IN ({listed}) AND chain_root IS NOT NULL", **values)
        roots.update(row[0] for row in rows)
    return sorted(roots - set(deleted_ids))


def _release_children(tx: Transaction, listed: str, values: dict[str, str], deleted_ids: set[str]) -> None:
    """Let the children that stay stand for themselves."""
    children = tx.rows(f"SELECT id, child_kind FROM sessions WHERE parent_session_id IN ({listed})", **values)
    for child, kind in children:
        if child in deleted_ids:
            tx.run("UPDATE sessions SET parent_session_id = NULL WHERE id = :id", id=child)
            continue
        kept = None if kind == ChildKind.COMPRESSION else kind
        tx.run(
            """UPDATE sessions SET parent_session_id = NULL, child_kind = :kind, chain_root = NULL, listed = :listed
               WHERE id = :id""",
            id=child,
            kind=kept,
            listed=int(is_listed(None, kept)),
        )
        if kind == ChildKind.COMPRESSION:
            _start_chain(tx, child)


def _start_chain(tx: Transaction, root: str) -> None:
    """Make a session that lost the one before it the first of what is left of the chain."""
    newest = tx.value("SELECT last_active FROM sessions WHERE id = :id", id=root)
    current, seen = [root], {root}
    while current:
        listed, values = placeholders("parent", current)
        rows = tx.rows(
            f"""SELECT id, last_active FROM sessions
                WHERE parent_session_id IN ({listed}) AND child_kind = 'compression'""",
            **values,
        )
        current = [child for child, _ in rows if child not in seen]
        seen.update(current)
        for child, last_active in rows:
            newest = max(newest, last_active)
            tx.run("UPDATE sessions SET chain_root = :root WHERE id = :id", root=root, id=child)
    set_chain_activity(tx, root, newest)
