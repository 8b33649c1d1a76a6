"""Deleting: one session, many, empty ones, old ones, and the files that belong to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hermes.errors import InvalidValue
from hermes.log import warn
from hermes.state.engine import Reading, Transaction
from hermes.state.kinds import ChildKind, is_listed
from hermes.state.operations import Operations, chunks, placeholders
from hermes.state.rows import optional_number
from hermes.state.sessions import session_exists, set_chain_active, settle_chain

DAY_S = 86_400.0
GHOST_AGE_S = DAY_S
ORPHAN_AGE_S = 7 * DAY_S
SAID_SOMETHING = "r.pinned = 1 OR EXISTS (SELECT 1 FROM messages m WHERE m.session_id = r.id)"
"""A delegate for whose sake an empty session stays."""
PRUNE_SLICE = 200
"""How many sessions one transaction deletes, so that nobody else has to wait long."""


class Retention(Operations):
    """Operations that take sessions away."""

    def delete_session(self, session_id: str, sessions_dir: str | Path | None = None) -> bool:
        """Delete a session, its messages and its delegates; other children stay and stand for themselves."""
        return self.delete_sessions([session_id], sessions_dir) == 1

    def delete_sessions(self, session_ids: Iterable[str], sessions_dir: str | Path | None = None) -> int:
        """Delete sessions and answer how many of the named ones there were."""
        if isinstance(session_ids, str) or not isinstance(session_ids, Iterable):
            raise InvalidValue("session_ids must be a list of ids", hint="delete_session deletes one")
        named = list(dict.fromkeys(each for each in session_ids if isinstance(each, str) and each))

        def delete(tx: Transaction) -> tuple[int, list[str]]:
            present = [each for each in named if session_exists(tx, each)]
            return len(present), delete_rows(tx, present)

        if not named:
            return 0
        count, gone = self._engine.write(delete)
        remove_files(gone, sessions_dir)
        return count

    def delete_session_if_empty(self, session_id: str, sessions_dir: str | Path | None = None) -> bool:
        """Delete a session that has neither title nor messages nor children."""

        def delete(tx: Transaction) -> list[str]:
            empty = tx.value(
                """SELECT 1 FROM sessions WHERE id = :id AND title IS NULL
                   AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = :id)
                   AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = :id)""",
                id=session_id,
            )
            return delete_rows(tx, [session_id]) if empty is not None else []

        gone = self._engine.write(delete)
        remove_files(gone, sessions_dir)
        return bool(gone)

    def count_empty_sessions(self) -> int:
        """How many sessions `delete_empty_sessions` would delete."""
        return self._engine.read(lambda tx: len(EMPTY.find(tx)))

    def delete_empty_sessions(self, sessions_dir: str | Path | None = None) -> int:
        """Delete ended sessions without a single message, unless they are archived or pinned."""
        return self._delete_all(EMPTY, sessions_dir)

    def prune_sessions(
        self,
        older_than_days: float = 90,
        source: str | None = None,
        sessions_dir: str | Path | None = None,
        *,
        include_open: bool = False,
    ) -> int:
        """Delete ended sessions that have seen nothing for so many days, never pinned ones; answers how many."""
        return self._delete_all(self._prunable(older_than_days, source, include_open), sessions_dir)

    def list_prunable(
        self, older_than_days: float = 90, source: str | None = None, *, include_open: bool = False
    ) -> list[str]:
        """The ids of the sessions that `prune_sessions` would delete, longest idle first."""
        return self._engine.read(self._prunable(older_than_days, source, include_open).find)

    def prune_empty_ghost_sessions(self, sessions_dir: str | Path | None = None) -> int:
        """Delete untitled, ended sessions of the full-screen terminal that are a day old and never had a message."""
        ghosts = Doomed(
            """source = 'tui' AND title IS NULL AND ended_at IS NOT NULL AND started_at < :cutoff AND pinned = 0
               AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id)""",
            delegate=SAID_SOMETHING,
            cutoff=self._clock() - GHOST_AGE_S,
        )
        return self._delete_all(ghosts, sessions_dir)

    def finalize_orphaned_compression_sessions(self) -> int:
        """End continuations that were begun a week ago and never taken up; deletes nothing."""
        now = self._clock()
        return self._engine.write(
            lambda tx: tx.run(
                """UPDATE sessions SET ended_at = :now, end_reason = 'orphaned_compression'
                   WHERE api_call_count = 0 AND ended_at IS NULL AND started_at < :cutoff AND message_count > 0
                     AND child_kind = 'compression'""",
                now=now,
                cutoff=now - ORPHAN_AGE_S,
            )
        )

    def _prunable(self, older_than_days: float, source: str | None, include_open: bool) -> Doomed:
        days = optional_number(older_than_days, "older_than_days")
        if days is None or days < 0:
            raise InvalidValue(f"older_than_days must be a number of days, not {older_than_days!r}")
        is_open = "" if include_open else "OR r.ended_at IS NULL"
        return Doomed(
            f"""s.last_active < :cutoff AND s.pinned = 0 {"" if include_open else "AND s.ended_at IS NOT NULL"}
                {"" if source is None else "AND s.source = :source"}
                AND NOT EXISTS (
                    SELECT 1 FROM sessions r
                    WHERE (r.id = COALESCE(s.chain_root, s.id) OR r.chain_root = COALESCE(s.chain_root, s.id))
                      AND (r.last_active >= :cutoff OR r.pinned = 1 {is_open}))""",
            delegate="r.last_active >= :cutoff OR r.pinned = 1",
            cutoff=self._clock() - days * DAY_S,
            source=source,
        )

    def _delete_all(self, doomed: Doomed, sessions_dir: str | Path | None) -> int:
        """Delete sessions in slices; one that no longer fits when its turn comes stays."""

        def delete(tx: Transaction, some: Sequence[str]) -> tuple[int, list[str]]:
            still = doomed.find(tx, some)
            return len(still), delete_rows(tx, still)

        deleted = 0
        # At least one write, so that a store that can only be read says so.
        for some in [*chunks(self._engine.read(doomed.find), PRUNE_SLICE)] or [[]]:
            count, gone = self._engine.write(partial(delete, some=some))
            remove_files(gone, sessions_dir)
            deleted += count
        return deleted


class Doomed:
    """Which sessions are to go, as a condition that can be asked again."""

    def __init__(self, condition: str, *, delegate: str | None = None, **values: Any) -> None:
        self._condition = condition
        self._delegate = delegate
        self._values = values

    def find(self, tx: Reading, among: Sequence[str] | None = None) -> list[str]:
        """The ids that meet the condition, longest idle first, of all sessions or `among` some."""
        listed, values = placeholders("id", among or ())
        rows = tx.rows(
            f"""SELECT s.id FROM sessions s WHERE {self._condition} {"" if among is None else f"AND s.id IN ({listed})"}
                ORDER BY s.last_active, s.id""",
            **self._values,
            **values,
        )
        spared = self._spared_by_delegates(tx, [row[0] for row in rows])
        return [row[0] for row in rows if row[0] not in spared]

    def _spared_by_delegates(self, tx: Reading, session_ids: Sequence[str]) -> set[str]:
        """Those that stay because a delegate, which would go with them, has to stay."""
        if self._delegate is None:
            return set()
        spared = set()
        for parent in _with_delegate_children(tx, session_ids):
            for some in chunks(_with_delegates(tx, [parent])[1:]):
                listed, values = placeholders("id", some)
                kept = f"SELECT 1 FROM sessions r WHERE r.id IN ({listed}) AND ({self._delegate}) LIMIT 1"
                if tx.value(kept, **self._values, **values) is not None:
                    spared.add(parent)
        return spared


EMPTY = Doomed(
    """message_count = 0 AND ended_at IS NOT NULL AND archived = 0 AND pinned = 0
       AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id)""",
    delegate=SAID_SOMETHING,
)


def delete_rows(tx: Transaction, session_ids: Sequence[str]) -> list[str]:
    """Delete sessions with everything that hangs on them; answers all that went, delegates included."""
    doomed = _with_delegates(tx, session_ids)
    for some in chunks(doomed):
        listed, values = placeholders("id", some)
        _release_children(tx, listed, values, set(doomed))
        tx.run(f"UPDATE sessions SET message_count = 0 WHERE id IN ({listed})", **values)
        for table in ("messages", "compression_locks"):
            tx.run(f"DELETE FROM {table} WHERE session_id IN ({listed})", **values)
    roots = _chain_roots(tx, doomed)
    for some in chunks(doomed):
        listed, values = placeholders("id", some)
        tx.run(f"DELETE FROM sessions WHERE id IN ({listed})", **values)
    for root in roots:
        settle_chain(tx, root)
    return doomed


def remove_files(session_ids: Iterable[str], sessions_dir: str | Path | None) -> None:
    """Remove the transcript files of deleted sessions."""
    if sessions_dir is None:
        return
    directory = Path(sessions_dir)
    for session_id in session_ids:
        if "/" in session_id or "\\" in session_id or session_id.startswith("."):
            continue
        doomed = [directory / f"{session_id}.json", directory / f"{session_id}.jsonl"]
        doomed += [
            path
            for path in directory.glob("request_dump_*.json")
            if path.name.startswith(f"request_dump_{session_id}_")
        ]
        for path in doomed:
            try:
                path.unlink(missing_ok=True)
            except OSError as exc:
                # The rows are gone already; a file that cannot go is worth a line, not a failure.
                warn(__name__, "%s could not be removed: %s", path, exc)


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


def _with_delegates(tx: Reading, session_ids: Sequence[str]) -> list[str]:
    """Sessions and the delegates that worked for them, at any depth, with the delegates' continuations."""
    doomed = dict.fromkeys(session_ids)
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
        generation = [each for each in found if each not in doomed]
        doomed |= dict.fromkeys(generation)
    return list(doomed)


def _chain_roots(tx: Reading, doomed: Sequence[str]) -> list[str]:
    """The chains that lose a session but not their first."""
    roots: set[str] = set()
    for some in chunks(doomed):
        listed, values = placeholders("id", some)
        rows = tx.rows(f"SELECT chain_root FROM sessions WHERE id IN ({listed}) AND chain_root IS NOT NULL", **values)
        roots.update(row[0] for row in rows)
    return sorted(roots - set(doomed))


def _release_children(tx: Transaction, listed: str, values: dict[str, str], doomed: set[str]) -> None:
    """Let the children that stay stand for themselves."""
    children = tx.rows(f"SELECT id, child_kind FROM sessions WHERE parent_session_id IN ({listed})", **values)
    for child, kind in children:
        if child in doomed:
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
            _begin_chain(tx, child)


def _begin_chain(tx: Transaction, root: str) -> None:
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
    set_chain_active(tx, root, newest)
