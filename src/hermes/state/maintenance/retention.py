"""Delete sessions: one, many, empty ones, old ones, and the files that belong to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from hermes.errors import InvalidValue
from hermes.state.engine import Reading, Report, Transaction
from hermes.state.maintenance.deletion import Deleted, add_delegates, delete_rows
from hermes.state.maintenance.deletion_rules import EMPTY, HAS_MESSAGES_OR_PIN, DeletionRule
from hermes.state.maintenance.receipt import Outlook, Receipt
from hermes.state.maintenance.session_files import remove_files
from hermes.state.operations import Operations, chunks, lock_sessions, placeholders
from hermes.state.rows import optional_number
from hermes.state.sessions.records import session_exists

DAY_S = 86_400.0
GHOST_AGE_S = DAY_S
ORPHAN_AGE_S = 7 * DAY_S
PRUNE_SLICE = 200
"""How many sessions one transaction deletes, so that other writers do not wait long."""


class Retention(Operations):
    """Operations that delete sessions."""

    def delete_session(self, session_id: str, sessions_dir: str | Path | None = None) -> bool:
        """Delete a session, its messages and its delegates; other children stay without a parent."""
        return self.delete_sessions([session_id], sessions_dir) == 1

    def delete_sessions(self, session_ids: Iterable[str], sessions_dir: str | Path | None = None) -> int:
        """Delete sessions and return how many of the given ids existed."""
        return self.delete_with_receipt(session_ids, sessions_dir).sessions

    def delete_with_receipt(
        self, session_ids: Iterable[str], sessions_dir: str | Path | None = None, *, secure: bool = False
    ) -> Receipt:
        """Delete sessions and return what was deleted; `secure` also erases it from the store's files."""
        if isinstance(session_ids, str) or not isinstance(session_ids, Iterable):
            raise InvalidValue("session_ids must be a list of ids", hint="for one session use delete_session")
        ids = list(dict.fromkeys(each for each in session_ids if isinstance(each, str) and each))

        def delete(tx: Transaction) -> tuple[int, Deleted]:
            present = [each for each in ids if session_exists(tx, each)]
            return len(present), delete_rows(tx, present)

        if not ids:
            return Receipt()
        count, deleted = self._engine.write(delete)
        return self._erase_if_secure(_receipt(count, deleted, sessions_dir), secure)

    def delete_session_if_empty(self, session_id: str, sessions_dir: str | Path | None = None) -> bool:
        """Delete a session that has neither title nor messages nor children."""

        def delete(tx: Transaction) -> list[str]:
            lock_sessions(tx, [session_id])
            empty = tx.value(
                """SELECT 1 FROM sessions WHERE id = :id AND title IS NULL
                   AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = :id)
                   AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = :id)""",
                id=session_id,
            )
            return delete_rows(tx, [session_id]).session_ids if empty is not None else []

        deleted = self._engine.write(delete)
        remove_files(deleted, sessions_dir)
        return bool(deleted)

    def count_empty_sessions(self) -> int:
        """Return how many sessions `delete_empty_sessions` would delete."""
        return self._engine.read(lambda tx: len(EMPTY.find(tx)))

    def delete_empty_sessions(self, sessions_dir: str | Path | None = None) -> int:
        """Delete ended sessions without messages, unless they are archived or pinned."""
        return self._delete_all(EMPTY, sessions_dir).sessions

    def prune_sessions(
        self,
        older_than_days: float = 90,
        source: str | None = None,
        sessions_dir: str | Path | None = None,
        *,
        include_open: bool = False,
    ) -> int:
        """Delete ended sessions without activity for `older_than_days`, except pinned ones; return how many."""
        return self.prune_with_receipt(older_than_days, source, sessions_dir, include_open=include_open).sessions

    def prune_with_receipt(
        self,
        older_than_days: float = 90,
        source: str | None = None,
        sessions_dir: str | Path | None = None,
        *,
        include_open: bool = False,
        secure: bool = False,
        report: Report | None = None,
    ) -> Receipt:
        """Prune sessions and return what was deleted; `secure` also erases it from the store's files."""
        check_report(report)
        rule = self._prunable(older_than_days, source, include_open)
        return self._erase_if_secure(self._delete_all(rule, sessions_dir, report=report), secure)

    def preview_prune(
        self, older_than_days: float = 90, source: str | None = None, *, include_open: bool = False
    ) -> Outlook:
        """Return what `prune_sessions` would delete now; change nothing."""
        rule = self._prunable(older_than_days, source, include_open)
        return self._engine.read(lambda tx: _preview(tx, rule.find(tx)))

    def list_prunable(
        self, older_than_days: float = 90, source: str | None = None, *, include_open: bool = False
    ) -> list[str]:
        """Return the ids that `prune_sessions` would delete, longest idle first."""
        return self._engine.read(self._prunable(older_than_days, source, include_open).find)

    def prune_empty_ghost_sessions(self, sessions_dir: str | Path | None = None) -> int:
        """Delete untitled, ended sessions of the full-screen terminal that are a day old and never had a message."""
        ghosts = DeletionRule(
            """source = 'tui' AND title IS NULL AND ended_at IS NOT NULL AND started_at < :cutoff AND pinned = 0
               AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id)""",
            delegate=HAS_MESSAGES_OR_PIN,
            cutoff=self._clock() - GHOST_AGE_S,
        )
        return self._delete_all(ghosts, sessions_dir).sessions

    def finalize_orphaned_compression_sessions(self) -> int:
        """End continuations that were created over a week ago and never used; delete nothing."""
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

    def _prunable(
        self, older_than_days: float, source: str | None, include_open: bool, exclude_sources: Sequence[str] = ()
    ) -> DeletionRule:
        days = optional_number(older_than_days, "older_than_days")
        if days is None or days < 0:
            raise InvalidValue(f"older_than_days must be a number of days, not {older_than_days!r}")
        is_open = "" if include_open else "OR r.ended_at IS NULL"
        excluded, values = placeholders("excluded", exclude_sources)
        return DeletionRule(
            f"""s.last_active < :cutoff AND s.pinned = 0 {"" if include_open else "AND s.ended_at IS NOT NULL"}
                {"" if source is None else "AND s.source = :source"}
                {f"AND s.source NOT IN ({excluded})" if exclude_sources else ""}
                AND NOT EXISTS (
                    SELECT 1 FROM sessions r
                    WHERE (r.id = COALESCE(s.chain_root, s.id) OR r.chain_root = COALESCE(s.chain_root, s.id))
                      AND (r.last_active >= :cutoff OR r.pinned = 1 {is_open}))""",
            delegate="r.last_active >= :cutoff OR r.pinned = 1",
            cutoff=self._clock() - days * DAY_S,
            source=source,
            **values,
        )

    def _delete_all(
        self,
        rule: DeletionRule,
        sessions_dir: str | Path | None,
        *,
        report: Report | None = None,
    ) -> Receipt:
        """Delete sessions in slices; a session that no longer meets the rule at its turn stays."""

        def delete(tx: Transaction, some: Sequence[str]) -> tuple[int, Deleted]:
            lock_sessions(tx, some)
            still = rule.find(tx, some)
            return len(still), delete_rows(tx, still)

        receipt, done = Receipt(), 0
        every = self._engine.read(rule.find)
        # At least one write, so that a read-only store raises.
        for some in [*chunks(every, PRUNE_SLICE)] or [[]]:
            count, deleted = self._engine.write(partial(delete, some=some))
            receipt += _receipt(count, deleted, sessions_dir)
            done += len(some)
            if report is not None:
                report("deleting", done, len(every))
        return receipt

    def _erase_if_secure(self, receipt: Receipt, secure: bool) -> Receipt:
        if not secure or not receipt.sessions:
            return receipt
        self._engine.maintenance.erase()
        return receipt._replace(is_erased=True)


def check_report(report: Report | None) -> None:
    """Raise InvalidValue if `report` is not a function."""
    if report is not None and not callable(report):
        raise InvalidValue(f"report must be a function, not {type(report).__name__}")


def _receipt(count: int, deleted: Deleted, sessions_dir: str | Path | None) -> Receipt:
    """Remove the files of deleted sessions, and return the receipt of one transaction."""
    files = remove_files(deleted.session_ids, sessions_dir)
    return Receipt(count, len(deleted.session_ids) - count, deleted.messages, files)


def _preview(tx: Reading, session_ids: Sequence[str]) -> Outlook:
    every = add_delegates(tx, session_ids)
    messages, titled, archived = 0, 0, 0
    moments: list[float] = []
    sources: Counter[str] = Counter()
    for some in chunks(every):
        listed, values = placeholders("id", some)
        messages += int(tx.value(f"SELECT COUNT(*) FROM messages WHERE session_id IN ({listed})", **values))
    for some in chunks(session_ids):
        listed, values = placeholders("id", some)
        for source, title, is_archived, last_active in tx.rows(
            f"SELECT source, title, archived, last_active FROM sessions WHERE id IN ({listed})", **values
        ):
            sources[source] += 1
            titled += title is not None
            archived += bool(is_archived)
            moments.append(last_active)
    return Outlook(
        sessions=len(session_ids),
        delegates=len(every) - len(session_ids),
        messages=messages,
        titled=titled,
        archived=archived,
        oldest=min(moments, default=None),
        newest=max(moments, default=None),
        by_source=tuple(sources.most_common()),
    )
