"""Copy lanes, the inbox, turns, the outbox, approvals, quotas and topics to another store, and compare them.

Leases are not copied: what a node of the source was working on waits in the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hermes.phrases import plural
from hermes.state.engine import Reading, Transaction
from hermes.state.lanes.lane_rows import COLUMNS
from hermes.state.lanes.queue.inbox import lock_or_add_queue
from hermes.state.operations import Operations, chunks, insert_into, placeholders, read
from hermes.state.rows import Row, Stored
from hermes.state.sessions.telegram_topics import add_telegram_topics, has_telegram_topics
from hermes.state.transfer.progress import Progress
from hermes.state.transfer.target import known_sessions
from hermes.state.transfer.verification import Difference

PAGE = 400
MOVED = "the lane was copied to another store"

Step = Callable[[Callable[[Transaction, Progress], Progress]], Progress]
"""Runs one step of a migration and saves its progress."""


@dataclass(frozen=True, slots=True)
class LaneTable:
    """A table: what its rows are called, the columns to copy, and the column that names a row in every store."""

    name: str
    what: str
    key: str
    columns: tuple[str, ...]
    place: str = "id"
    """The column by which rows are copied in order."""
    migration: str = "lanes"
    """The migration that creates it; a store that is only read may lack it."""


TABLES = (
    LaneTable("lanes", "lane", "id", ("id", "session_key", "session_id", *COLUMNS)),
    LaneTable(
        "inbox",
        "inbox message",
        "delivery_key",
        (
            *("uid", "lane_id", "session_key", "kind", "state", "is_open", "reason", "attempts", "starts"),
            *("delivery_key", "message_key", "message_ref", "platform", "account", "chat_id", "message_id"),
            *("delivery_id", "turn_id", "accepted_at", "started_at", "finished_at", "dead_at", "payload"),
        ),
    ),
    LaneTable(
        "turns",
        "turn",
        "turn_id",
        (
            *("turn_id", "lane_id", "session_key", "session_id", "node", "token", "state", "reason", "progress"),
            *("started_at", "progressed_at", "finished_at", "note"),
        ),
    ),
    LaneTable(
        "outbox",
        "outbox message",
        "key_ref",
        (
            *("key_ref", "idempotency_key", "lane_id", "session_key", "turn_id", "platform", "account", "kind"),
            *("state", "reason", "attempts", "holder", "created_at", "due_at", "expires_at", "finished_at"),
            *("dead_at", "receipt", "payload"),
        ),
    ),
    LaneTable(
        "approvals",
        "approval",
        "id",
        (
            *("id", "lane_id", "session_key", "session_id", "owner", "platform", "tool", "arguments", "directory"),
            *("subject", "summary", "detail", "risk", "digest", "open_digest", "state", "scope", "asked_at"),
            *("expires_at", "decided_at", "decided_by"),
        ),
        place="number",
        migration="approvals",
    ),
    LaneTable(
        "usage_days",
        "day of a quota",
        "id",
        ("id", "scope", "day", "turns", "tokens", "cost_usd"),
        migration="approvals",
    ),
)
TOPIC_TABLES = (
    LaneTable(
        "telegram_dm_topic_mode",
        "chat with topics",
        "chat_id",
        (
            *("chat_id", "user_id", "enabled", "activated_at", "updated_at", "has_topics_enabled"),
            *("allows_users_to_create_topics", "capability_checked_at", "intro_message_id", "pinned_message_id"),
        ),
        place="chat_id",
    ),
    LaneTable(
        "telegram_dm_topic_bindings",
        "topic",
        "session_id",
        (
            *("chat_id", "thread_id", "user_id", "session_key", "session_id", "managed_mode", "linked_at"),
            "updated_at",
        ),
        place="session_id",
    ),
)
"""Tables that a file has only after a chat has used topics."""
WITH_SESSIONS = ("lanes", "approvals", "telegram_dm_topic_bindings")
"""Tables whose rows are nothing without their session."""


def copy_lanes(store: Operations, target: Operations, step: Step) -> None:
    """Copy the rows that the target lacks, and those that changed in the source but were not used in the target."""
    if has_telegram_topics(store):
        add_telegram_topics(target)
    for table in _tables(store):
        for page in _pages(store, table):
            step(partial(_copy_page, table=table, page=page))


def compare_lanes(store: Operations, target: Operations) -> Iterator[Difference]:
    """Yield what the target lacks, and what differs there, table by table."""
    for table in _tables(store):
        if table in TOPIC_TABLES and not has_telegram_topics(target):
            continue
        missing = different = ahead = 0
        for page in _pages(store, table):
            here = read(target, partial(_rows_by_key, table=table, keys=[row[table.key] for row in page]))
            for row in page:
                found = here.get(row[table.key])
                missing += found is None
                if found is not None and _as_copied(table, found) != row:
                    is_ahead = _is_used(table, found, row)
                    ahead, different = ahead + is_ahead, different + (not is_ahead)
        for count, verb in ((missing, "lacks"), (different, "differs in"), (ahead, "is ahead in")):
            if count:
                yield Difference(table.name, f"{verb} {plural(count, table.what)}", is_ahead=verb == "is ahead in")


def _tables(store: Operations) -> list[LaneTable]:
    """Return the tables that a store has."""
    names = read(store, lambda tx: tx.rows("SELECT name FROM hermes_ledger"))
    migrations = {str(row[0]).partition("_")[2] for row in names}
    found = [table for table in TABLES if table.migration in migrations]
    return [*found, *TOPIC_TABLES] if has_telegram_topics(store) else found


def _pages(store: Operations, table: LaneTable) -> Iterator[list[Row]]:
    """Yield the rows of a table in order, as they are copied."""
    after: Any = "" if table.place == table.key else 0
    names = ", ".join(f"t.{name}" for name in table.columns)
    place = f"t.{table.place}"
    sql = f"SELECT {place} AS place, {names} FROM {table.name} t WHERE {place} > :after ORDER BY {place} LIMIT :most"
    while rows := read(store, lambda tx: tx.rows(sql, after=after, most=PAGE)):  # noqa: B023 - called at once
        yield [_as_copied(table, dict(zip(table.columns, row[1:], strict=True))) for row in rows]
        after = rows[-1][0]


def _as_copied(table: LaneTable, row: Mapping[str, Any]) -> Row:
    """Return a row as it is in a store where no node works on it."""
    copied = {name: Stored(value) if isinstance(value, str) else value for name, value in row.items()}
    if table.name == "inbox" and copied["state"] == "running":
        copied |= {"state": "accepted", "turn_id": None}
    if table.name == "turns" and copied["state"] == "running":
        copied |= {"state": "lost", "reason": MOVED, "finished_at": copied["started_at"]}
    return copied


def _copy_page(tx: Transaction, progress: Progress, table: LaneTable, page: Sequence[Row]) -> Progress:
    here = _rows_by_key(tx, table, [row[table.key] for row in page])
    has_sessions = table.name in WITH_SESSIONS
    sessions = known_sessions(tx, [row["session_id"] for row in page]) if has_sessions else set()
    taken = _taken_messages(tx, page) if table.name == "inbox" else set()
    linked = _linked_topics(tx, page) if table.name == "telegram_dm_topic_bindings" else set()
    if table.name == "approvals":
        _detach_known(tx, page)
    added: list[Row] = []
    changed: list[Row] = []
    for row in page:
        found = here.get(row[table.key])
        if has_sessions and row["session_id"] not in sessions:
            continue
        if linked and (row["chat_id"], row["thread_id"]) in linked:
            continue
        if found is None and row.get("message_key") not in taken:
            added.append(row)
        elif found is not None and progress.is_exclusive and _as_copied(table, found) != row:
            changed += [] if _is_used(table, found, row) else [row]
    tx.run_many(insert_into(table.name, table.columns), added)
    assigned = ", ".join(f"{name} = :{name}" for name in table.columns if name != table.key)
    for row in changed:
        tx.run(f"UPDATE {table.name} SET {assigned} WHERE {table.key} = :{table.key}", **row)
    if table.name == "inbox":
        for lane_id, key in {row["lane_id"]: row["session_key"] for row in (*added, *changed)}.items():
            queue = lock_or_add_queue(tx, lane_id, key)
            queue.recount(tx)
            queue.save(tx)
    return progress


def _rows_by_key(tx: Reading, table: LaneTable, keys: Sequence[str]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for some in chunks(keys):
        listed, values = placeholders("key", [Stored(key) for key in some])
        rows = tx.rows(f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {table.key} IN ({listed})", **values)
        for row in rows:
            stored = dict(zip(table.columns, row, strict=True))
            found[stored[table.key]] = stored
    return found


def _progress(approval: Row) -> int:
    """Return how far an approval is: it waits for a decision, waits to be used, or has ended."""
    return {"pending": 0, "approved": 1}.get(approval["state"], 2)


def _detach_known(tx: Reading, page: Sequence[Row]) -> None:
    """Let no new request join an approval of a page if the target has another one that it joins."""
    for some in chunks([row["open_digest"] for row in page if row["open_digest"] is not None]):
        listed, values = placeholders("digest", some)
        sql = f"SELECT open_digest, id FROM approvals WHERE open_digest IN ({listed})"
        known: dict[str, str] = dict(tx.rows(sql, **values))
        for row in page:
            if known.get(row["open_digest"], row["id"]) != row["id"]:
                row["open_digest"] = None


def _taken_messages(tx: Reading, page: Sequence[Row]) -> set[str]:
    """Return the messages of a page that the target has under other delivery ids."""
    taken: set[str] = set()
    for some in chunks([row["message_key"] for row in page if row["message_key"] is not None]):
        listed, values = placeholders("key", some)
        taken.update(
            row[0] for row in tx.rows(f"SELECT message_key FROM inbox WHERE message_key IN ({listed})", **values)
        )
    return taken


def _linked_topics(tx: Reading, page: Sequence[Row]) -> set[tuple[str, str]]:
    """Return the topics of a page that continue other sessions in the target."""
    linked: set[tuple[str, str]] = set()
    for row in page:
        sql = """SELECT 1 FROM telegram_dm_topic_bindings
                 WHERE chat_id = :chat AND thread_id = :thread AND session_id <> :session"""
        place = (row["chat_id"], row["thread_id"])
        if tx.value(sql, chat=place[0], thread=place[1], session=row["session_id"]) is not None:
            linked.add(place)
    return linked


def _is_used(table: LaneTable, found: Row, row: Row) -> bool:
    """Whether the row of the target is further than that of the source, because a node of the target used it."""
    if table.name == "lanes" or table in TOPIC_TABLES:
        return bool(found["updated_at"] > row["updated_at"])
    if table.name == "approvals":
        return found["state"] != row["state"] and _progress(found) >= _progress(row)
    if table.name == "usage_days":
        return any(found[name] > row[name] for name in ("turns", "tokens", "cost_usd"))
    if table.name == "inbox":
        return bool(found["state"] not in ("accepted", "held") or found["starts"] > row["starts"])
    return table.name == "turns" or found["state"] not in ("draft", "pending")
