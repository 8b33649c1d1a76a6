"""What only old and foreign files have, or lack: shared titles, messages of no session, no counts of tools."""

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
    """What is to be known about a store before its rows are read."""

    titles: dict[str, str]
    """Other titles for sessions that share theirs."""
    orphans: frozenset[str]
    """Sessions that are not there, though there are messages of them."""
    uncounted: frozenset[str]
    """Sessions to which another program has added messages that nobody has counted yet."""
    counts_no_tools: bool
    """Whether nobody has counted how often tools are called."""


def find_legacy_rows(tx: Reading) -> LegacyFacts:
    """Look for them."""
    orphans = tx.rows(
        """SELECT DISTINCT m.session_id FROM messages m LEFT JOIN sessions s ON s.id = m.session_id
           WHERE s.id IS NULL"""
    )
    # A store of ours has a ledger; everything else is shown with its messages counted.
    is_ours = tx.value("SELECT 1 FROM hermes_ledger LIMIT 1") is not None
    uncounted = tx.rows("SELECT DISTINCT session_id FROM messages WHERE uid IS NULL") if is_ours else []
    return LegacyFacts(
        titles=_free_titles(tx),
        orphans=frozenset(row[0] for row in orphans),
        uncounted=frozenset(row[0] for row in uncounted),
        counts_no_tools=not is_ours,
    )


def session_of_orphans(tx: Reading, session_id: str) -> Row | None:
    """A session for messages that have none, as far as it can be told from them."""
    first = tx.value("SELECT MIN(timestamp) FROM messages WHERE session_id = :id", id=session_id)
    if first is None:
        return None
    return with_recount(tx, canonical_session({**dict.fromkeys(SESSION), "id": session_id, "started_at": first}))


def with_recount(tx: Reading, row: Row) -> Row:
    """A session with what its messages tell of it."""
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
    """The bookings of a session; one whose tokens were counted and never booked gets one of all that was counted."""
    if usage or not any(row[name] for name in (*COUNTERS, *COSTS)):
        return usage
    start = {"at": row["started_at"], "model": row["model"], "billing_provider": row["billing_provider"]}
    _, opening = reconcile_counters(row, [], start)
    return [tuple(each[name] for name in EVENT_COLUMNS) for each in opening]


def _free_titles(tx: Reading) -> dict[str, str]:
    """Titles with ` (2)`, ` (3)` for all but the first of those that share one among the sessions of an owner."""
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
