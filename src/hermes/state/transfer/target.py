"""Write the copied rows into the target, within the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hermes.state.engine import Reading, Transaction, Values
from hermes.state.operations import chunks, insert_into, owner_condition, placeholders
from hermes.state.owner import owner_from_column
from hermes.state.rows import Row
from hermes.state.sessions.records import activity_tick
from hermes.state.sessions.titles import free_title
from hermes.state.transfer.canonical_rows import MESSAGE, SESSION, Message
from hermes.state.transfer.session_bundle import SessionBundle, are_variants
from hermes.state.usage.events import EVENT_COLUMNS

_EMPTY_BY_DEFAULT = frozenset(MESSAGE) - {"id", "session_id", "role", "timestamp", "active", "observed"}
_DEPENDENT_TABLES = ("usage_events", "rewinds", "session_tools", "pending_links")


def known_sessions(tx: Reading, session_ids: Iterable[str]) -> set[str]:
    """Return those of the sessions that the target has."""
    found: set[str] = set()
    for some in chunks(list(dict.fromkeys(session_ids))):
        listed, values = placeholders("id", some)
        found.update(row[0] for row in tx.rows(f"SELECT id FROM sessions WHERE id IN ({listed})", **values))
    return found


def newest_message(tx: Reading) -> int:
    """Return the highest message id of the target."""
    return int(tx.value("SELECT MAX(id) FROM messages") or 0)


def add_sessions(tx: Transaction, bundles: Sequence[SessionBundle]) -> None:
    """Insert missing sessions without their messages; parents come before their children."""
    if not bundles:
        return
    here = known_sessions(tx, [each.row["parent_session_id"] for each in bundles if each.row["parent_session_id"]])
    taken = _taken_titles(tx, bundles)
    rows: list[Row] = []
    for each in bundles:
        row = dict(each.row)
        if row["parent_session_id"] not in here:
            row["parent_session_id"] = None
        if (row["title"], row["owner"]) in taken:
            tx.run_many(insert_into("sessions", SESSION), rows)
            rows = []
            row["title"] = free_title(tx, row["title"], row["owner"])
        if row["title"] is not None:
            taken.add((row["title"], row["owner"]))
        here.add(each.id)
        rows.append(row)
    tx.run_many(insert_into("sessions", SESSION), rows)
    _add_dependent_rows(tx, bundles, None)


def change_session(tx: Transaction, bundle: SessionBundle, ids: Mapping[str, int]) -> None:
    """Make a session equal to the source, except its messages; `ids` are its message ids in the target, by uid."""
    row = dict(bundle.row)
    if row["parent_session_id"] and not known_sessions(tx, [row["parent_session_id"]]):
        row["parent_session_id"] = None
    row["title"] = _title_for(tx, bundle)
    changes = ", ".join(f"{name} = :{name}" for name in SESSION if name != "id")
    tx.run(f"UPDATE sessions SET {changes} WHERE id = :id", **row)
    for table in _DEPENDENT_TABLES:
        tx.run(tx.dialect.delete_where_in(table, "session_id", ["id"]), id=bundle.id)
    _add_dependent_rows(tx, [bundle], ids)


def add_messages(tx: Transaction, messages: Sequence[Message]) -> None:
    """Insert messages with their ids; later messages get higher ones."""
    if not messages:
        return
    _insert_messages(tx, [each.values for each in messages])
    if tx.dialect.raise_next_id:
        tx.value(tx.dialect.raise_next_id, last=max(each.id for each in messages))


def add_renumbered(tx: Transaction, session_id: str, messages: Sequence[Message]) -> dict[str, int]:
    """Insert messages of a session with new ids, in order, and return the ids by uid."""
    if not messages:
        return {}
    lock = f"SELECT id FROM sessions WHERE id = :id {tx.dialect.for_update}"
    _, numbers = tx.lock_and_number(lock, len(messages), id=session_id)
    if numbers:
        _insert_messages(tx, [(number, *each.without_id) for each, number in zip(messages, numbers, strict=True)])
        return {each.uid: number for each, number in zip(messages, numbers, strict=True)}
    ids = tx.insert_messages([dict(zip(MESSAGE[1:], each.without_id, strict=True)) for each in messages])
    return {each.uid: number for each, number in zip(messages, ids, strict=True)}


def remove_messages(tx: Transaction, session_id: str, message_ids: Sequence[int]) -> None:
    """Delete messages that no longer exist in the source. The caller updates the counters."""
    # The counter first: if rows vanish while it still counts them, that looks like another program's change.
    tx.run("UPDATE sessions SET message_count = 0 WHERE id = :id", id=session_id)
    for some in chunks(message_ids):
        listed, values = placeholders("id", some)
        delete = tx.dialect.delete_where_in("messages", "session_id", ["session"])
        tx.run(f"{delete} AND id IN ({listed})", session=session_id, **values)


def recount_session(tx: Transaction, bundle: SessionBundle) -> None:
    """Recompute the counters of a session that has more messages than in the source."""
    count, newest = tx.rows("SELECT SUM(active), MAX(timestamp) FROM messages WHERE session_id = :id", id=bundle.id)[0]
    active = max(newest, bundle.row["chain_active"])
    tx.run(
        """UPDATE sessions SET message_count = :count, last_active = :newest, chain_active = :active,
           active_tick = :tick WHERE id = :id""",
        id=bundle.id,
        count=int(count),
        newest=newest,
        active=active,
        tick=activity_tick(active),
    )


def _insert_messages(tx: Transaction, rows: Sequence[Values]) -> None:
    """Insert rows in the order of `MESSAGE`, without the columns that are empty in all of them."""
    columns, sent = [], []
    for name, values in zip(MESSAGE, zip(*rows, strict=True), strict=True):
        if name not in _EMPTY_BY_DEFAULT or any(value is not None for value in values):
            columns.append(name)
            sent.append(values)
    tx.run_many(
        insert_into("messages", tuple(columns)),
        [dict(zip(columns, row, strict=True)) for row in zip(*sent, strict=True)],
    )


def _add_dependent_rows(tx: Transaction, bundles: Sequence[SessionBundle], ids: Mapping[str, int] | None) -> None:
    """Insert the dependent rows of sessions; undo records use the message ids in `ids`, or the original ones."""
    _add_many(
        tx,
        "usage_events",
        ("session_id", *EVENT_COLUMNS),
        [(bundle.id, *each) for bundle in bundles for each in bundle.usage],
    )
    _add_many(
        tx,
        "rewinds",
        ("session_id", "action", "target_message_id", "message_count", "at"),
        [
            (bundle.id, each.action, each.target_in(ids), each.message_count, each.at)
            for bundle in bundles
            for each in bundle.rewinds
        ],
    )
    _add_many(
        tx,
        "session_tools",
        ("session_id", "tool_name", "calls"),
        [(bundle.id, *each) for bundle in bundles for each in bundle.tools],
    )
    _add_many(
        tx,
        "pending_links",
        ("session_id", "parent_session_id", "child_kind"),
        [(bundle.id, *bundle.pending_parent) for bundle in bundles if bundle.pending_parent is not None],
    )


def _add_many(tx: Transaction, table: str, columns: tuple[str, ...], rows: Sequence[Values]) -> None:
    if rows:
        tx.run_many(insert_into(table, columns), [dict(zip(columns, row, strict=True)) for row in rows])


def _title_for(tx: Reading, bundle: SessionBundle) -> str | None:
    """Return the title of a session, with a number if another session has it."""
    title: str | None = bundle.row["title"]
    if title is None:
        return None
    owner = owner_from_column(bundle.row["owner"])
    others = f"SELECT 1 FROM sessions WHERE title = :title AND id <> :id {owner_condition(owner)}"
    if tx.value(others, title=title, id=bundle.id, whose=owner.stored) is None:
        return title
    mine: str | None = tx.value("SELECT title FROM sessions WHERE id = :id", id=bundle.id)
    return mine if are_variants(mine, title) else free_title(tx, title, owner.stored)


def _taken_titles(tx: Reading, bundles: Sequence[SessionBundle]) -> set[tuple[str, str | None]]:
    """Return those titles of new sessions that the target already has, with their owners."""
    titles = [each.row["title"] for each in bundles if each.row["title"] is not None]
    found: set[tuple[str, str | None]] = set()
    for some in chunks(titles):
        listed, values = placeholders("title", some)
        rows = tx.rows(f"SELECT title, owner FROM sessions WHERE title IN ({listed})", **values)
        found.update((title, owner) for title, owner in rows)
    return found
