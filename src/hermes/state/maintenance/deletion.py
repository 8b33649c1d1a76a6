"""Delete sessions with all rows that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hermes.state.engine import Reading, Transaction
from hermes.state.operations import chunks, placeholders
from hermes.state.owner import EVERYBODY
from hermes.state.sessions.lineage.kinds import ChildKind, is_listed
from hermes.state.sessions.lineage.links import descendants
from hermes.state.sessions.records import recompute_chain_activity, set_chain_activity


class Deleted(NamedTuple):
    """The sessions and messages that a deletion removed."""

    session_ids: list[str]
    """All deleted sessions, including the delegates of the selected ones."""
    messages: int
    """How many messages they had, including undone ones."""


def delete_rows(tx: Transaction, session_ids: Sequence[str]) -> Deleted:
    """Delete sessions, their delegates, and all rows that belong to them."""
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
    """Return sessions and their delegates, at any depth, with the delegates' continuations."""
    delegates = descendants(tx, session_ids, EVERYBODY, kinds=(ChildKind.DELEGATE,), most=2)
    below = list(delegates.keys() - set(session_ids))
    found = descendants(tx, below, EVERYBODY, kinds=(ChildKind.DELEGATE, ChildKind.COMPRESSION))
    return list(dict.fromkeys([*session_ids, *found]))


def _chain_roots(tx: Reading, deleted_ids: Sequence[str]) -> list[str]:
    """Return the roots of chains that lose a session but not their root."""
    roots: set[str] = set()
    for some in chunks(deleted_ids):
        listed, values = placeholders("id", some)
        rows = tx.rows(f"SELECT chain_root FROM sessions WHERE id IN ({listed}) AND chain_root IS NOT NULL", **values)
        roots.update(row[0] for row in rows)
    return sorted(roots - set(deleted_ids))


def _release_children(tx: Transaction, listed: str, values: dict[str, str], deleted_ids: set[str]) -> None:
    """Detach the remaining children of deleted sessions."""
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
    """Make a session whose predecessor is deleted the root of the rest of its chain."""
    chain = descendants(tx, [root], EVERYBODY, kinds=(ChildKind.COMPRESSION,))
    for each in chain:
        if each != root:
            tx.run("UPDATE sessions SET chain_root = :root WHERE id = :id", root=root, id=each)
    set_chain_activity(tx, root, max(each.last_active for each in chain.values()))
