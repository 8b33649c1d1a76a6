"""Peculiarities of old and foreign files: shared titles, messages without a session, no tool counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hermes.state.engine import Reading, Values
from hermes.state.operations import owner_condition
from hermes.state.owner import owner_from_column
from hermes.state.rows import Row, decode_content, encode_text, make_preview
from hermes.state.sessions import title_rules
from hermes.state.transfer.canonical_rows import SESSION, canonical_session
from hermes.state.usage.counters import COSTS, COUNTERS
from hermes.state.usage.events import EVENT_COLUMNS, reconcile_counters


@dataclass(frozen=True, slots=True)
class LegacyFacts:
    """Facts about a store that are needed before its rows are read."""

    titles: dict[str, str]
    """New titles for sessions that share theirs."""
    orphans: frozenset[str]
    """Ids of missing sessions that messages refer to."""
    uncounted: frozenset[str]
    """Sessions with messages that another program added and that the counters lack."""
    counts_no_tools: bool
    """Whether the store has no counts of tool calls."""


def find_legacy_rows(tx: Reading) -> LegacyFacts:
    """Read the facts about a store."""
    orphans = tx.rows(
        """SELECT DISTINCT m.session_id FROM messages m LEFT JOIN sessions s ON s.id = m.session_id
           WHERE s.id IS NULL"""
    )
    # A Hermes store has a ledger; the view of any other file counts its messages itself.
    is_ours = tx.value("SELECT 1 FROM hermes_ledger LIMIT 1") is not None
    uncounted = tx.rows("SELECT DISTINCT session_id FROM messages WHERE uid IS NULL") if is_ours else []
    return LegacyFacts(
        titles=_free_titles(tx),
        orphans=frozenset(row[0] for row in orphans),
        uncounted=frozenset(row[0] for row in uncounted),
        counts_no_tools=not is_ours,
    )


def session_of_orphans(tx: Reading, session_id: str) -> Row | None:
    """Return a session for messages that have none, made from those messages."""
    first = tx.value("SELECT MIN(timestamp) FROM messages WHERE session_id = :id", id=session_id)
    if first is None:
        return None
    return with_recount(tx, canonical_session({**dict.fromkeys(SESSION), "id": session_id, "started_at": first}))


def with_recount(tx: Reading, row: Row) -> Row:
    """Return a session with counters computed from its messages."""
    last, count = tx.rows("SELECT MAX(timestamp), SUM(active) FROM messages WHERE session_id = :id", id=row["id"])[0]
    first_message = tx.value(
        """SELECT content FROM messages WHERE session_id = :id AND role = 'user' AND content IS NOT NULL AND active = 1
           ORDER BY id LIMIT 1""",
        id=row["id"],
    )
    counted = {
        "last_active": last,
        "chain_active": max(row["chain_active"], last or 0.0),
        "active_tick": None,
        "message_count": count,
        "preview": None if first_message is None else encode_text(make_preview(decode_content(first_message))),
    }
    return canonical_session({**row, **counted})


def usage_or_opening(row: Row, usage: list[Values]) -> list[Values]:
    """Return the usage events of a session, or one opening event if tokens were counted without events."""
    if usage or not any(row[name] for name in (*COUNTERS, *COSTS)):
        return usage
    start = {"at": row["started_at"], "model": row["model"], "billing_provider": row["billing_provider"]}
    _, opening = reconcile_counters(row, [], start)
    return [tuple(each[name] for name in EVENT_COLUMNS) for each in opening]


def _free_titles(tx: Reading) -> dict[str, str]:
    """Return titles with ` (2)`, ` (3)` for all but the first session of an owner that share one."""
    shared = tx.rows(
        "SELECT title, owner FROM sessions WHERE title IS NOT NULL GROUP BY title, owner HAVING count(*) > 1"
    )
    if not shared:
        return {}
    taken: set[Any] = set(tx.rows("SELECT title, owner FROM sessions WHERE title IS NOT NULL"))
    found: dict[str, str] = {}
    for title, owner in shared:
        asker = owner_from_column(owner)
        rows = tx.rows(
            f"SELECT id FROM sessions WHERE title = :title {owner_condition(asker)} ORDER BY started_at, id",
            title=title,
            whose=asker.stored,
        )
        number = 2
        for (session_id,) in rows[1:]:
            while (title_rules.add_suffix(title, number), owner) in taken:
                number += 1
            found[session_id] = title_rules.add_suffix(title, number)
            taken.add((found[session_id], owner))
    return found
