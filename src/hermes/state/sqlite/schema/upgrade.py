"""The upgrade of an old file: tables, columns and rows, without losing a row."""

from __future__ import annotations

from glob import escape
from pathlib import Path
from typing import Any

import apsw

from hermes.home import sync_directory
from hermes.state.owner import owner_column
from hermes.state.rows import decode_content, derived_uid, make_preview
from hermes.state.sessions import title_rules
from hermes.state.sessions.lineage.kinds import (
    ChildKind,
    first_of_chain,
    is_listed,
    kind_from_markers,
    kind_from_parent,
)
from hermes.state.sqlite.connection import View, connect
from hermes.state.sqlite.files.names import beside, remove, timestamped_path
from hermes.state.sqlite.files.page_copy import copy_database
from hermes.state.sqlite.invalid_utf8 import decode_value, type_and_bytes
from hermes.state.sqlite.schema.definitions import ForeignSchema, normalize
from hermes.state.sqlite.search import index_state

FTS_TABLES = index_state.TABLES
REPLACED = "0006_replaced"
TRIGGERS_OF_REPLACED = frozenset(("messages_replaced", "sessions_replaced"))
RETIRED = ("idx_messages_order",)
"""Indexes of earlier schemas that the schema no longer has."""
"""A migration and its triggers: a file without it lacks them, but its index is complete."""


def back_up(path: Path, version: int) -> Path:
    """Copy a database while its writer waits; the copy gets its final name when it is complete and on disk."""
    for left_over in path.parent.glob(f"{escape(path.name)}.pre-*.partial"):
        remove(left_over)  # of a process that died: with the writer lock, no other process makes a copy
    target = timestamped_path(path, f"pre-{version}")
    partial = beside(target, ".partial")
    copy_database(path, partial)
    partial.replace(target)
    sync_directory(target.parent)
    return target


def reconcile(view: View, schema_sql: str, foreign: ForeignSchema) -> None:
    """Create every table and column that the file lacks, and drop indexes and triggers that have changed."""
    wanted = connect(":memory:", apsw.SQLITE_OPEN_READWRITE)
    wanted.execute(schema_sql).fetchall()
    model = View(wanted)
    is_index_lost = _drop_changed(view, model, foreign)
    for name, sql in model.rows(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
    ):
        if name.startswith((*FTS_TABLES, "sqlite_")):
            continue
        if not _columns(view, name):
            view.run(sql)
        present = _columns(view, name)
        for column, declaration in _columns(model, name).items():
            if column not in present:
                view.run(f"ALTER TABLE {name} ADD COLUMN {column} {declaration}")
    if is_index_lost:
        index_state.reset(view)
    _make_titles_unique(view)
    wanted.close()


def remove_foreign(view: View, foreign: ForeignSchema) -> None:
    """Drop the triggers, views and indexes of a file that are not ours."""
    for each in foreign.removable:
        quoted = each.name.replace('"', '""')
        view.run(f'DROP {each.kind} IF EXISTS main."{quoted}"')


def mark_all_stale(view: View) -> None:
    """Mark every session to be counted again, and give every message its uid before the index exists."""
    _assign_uids(view, "1 = 1")
    view.run("UPDATE sessions SET child_kind = '?'")
    view.run("INSERT OR IGNORE INTO stale_sessions SELECT id FROM sessions")
    view.run("INSERT OR IGNORE INTO stale_sessions SELECT DISTINCT session_id FROM messages")


def adopt_foreign_rows(view: View) -> None:
    """Complete the rows that another program wrote: uids, kinds, counters, previews, usage."""
    view.run("DELETE FROM stale_sessions WHERE typeof(session_id) <> 'text'")  # no session of ours has such an id
    view.run("INSERT OR IGNORE INTO stale_sessions SELECT DISTINCT session_id FROM messages WHERE uid IS NULL")
    _create_missing_sessions(view)
    view.run("INSERT OR IGNORE INTO stale_index SELECT id FROM messages WHERE uid IS NULL")
    _assign_uids(view, "session_id IN (SELECT session_id FROM stale_sessions)")
    view.run("""UPDATE sessions SET parent_session_id = NULL
                WHERE parent_session_id IS NOT NULL AND id IN (SELECT session_id FROM stale_sessions)
                  AND NOT EXISTS (SELECT 1 FROM sessions p WHERE p.id = sessions.parent_session_id)""")
    _detach_orphaned_continuations(view)
    _set_kinds(view)
    _recount(view)
    _set_previews(view)
    _set_chains(view)
    _add_opening_events(view)
    view.run("DELETE FROM stale_sessions")


def _drop_changed(view: View, model: View, foreign: ForeignSchema) -> bool:
    """Drop what is not ours and outdated full-text tables; return whether the index must be filled again."""
    wanted = {
        name: normalize(sql) for name, sql in model.rows("SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL")
    }
    present = view.rows("SELECT type, name, sql FROM sqlite_schema WHERE sql NOT NULL")
    lost = foreign.has_lost_index
    remove_foreign(view, foreign)
    for name in RETIRED:
        view.run(f"DROP INDEX IF EXISTS main.{name}")
    # Another program's trigger may have changed the index.
    lost = lost or any(each.kind == "trigger" and "fts" in str(each.sql).lower() for each in foreign.removable)
    # Without one of our triggers, messages may have changed that the index still has as they were.
    is_ours = bool(_columns(view, "hermes_ledger"))
    triggers = {name for (name,) in model.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    if is_ours and not _has_migration(view, REPLACED):
        triggers -= TRIGGERS_OF_REPLACED
    lost = lost or not triggers <= {name for _, name, _ in present}
    lost = lost or not (is_ours and index_state.has_current_format(view) and index_state.has_valid_mark(view))
    for table in FTS_TABLES:
        sql = next((sql for kind, name, sql in present if name == table and kind == "table"), None)
        if sql is None or normalize(sql) != wanted[table]:
            view.run(f"DROP TABLE IF EXISTS {table}")
            lost = True
    if lost:
        for table in FTS_TABLES:
            view.run(f"DROP TABLE IF EXISTS {table}")
    return lost


def _has_migration(view: View, name: str) -> bool:
    return view.value("SELECT 1 FROM hermes_ledger WHERE name = :name", name=name) is not None


def _columns(view: View, table: str) -> dict[str, str]:
    """The columns of a table, each with its declaration for ALTER TABLE."""
    declared = {}
    for _, name, kind, not_null, default, *_ in view.rows(f"PRAGMA table_info({table})"):
        parts = [kind, "NOT NULL" if not_null and default is not None else "", f"DEFAULT {default}" if default else ""]
        declared[name] = " ".join(part for part in parts if part)
    return declared


def _make_titles_unique(view: View) -> None:
    """Number the titles that several sessions of an owner have, in the order of their start."""
    taken: set[tuple[str, str]] = set()
    doubled = []
    for session_id, title, owner in view.rows(
        "SELECT id, title, COALESCE(owner, '') FROM sessions WHERE title IS NOT NULL ORDER BY started_at, id"
    ):
        if (owner, title) in taken:
            doubled.append((session_id, title, owner))
        taken.add((owner, title))
    numbers: dict[tuple[str, str], int] = {}
    for session_id, title, owner in doubled:
        number = numbers.get((owner, title), 1) + 1
        while (owner, title_rules.add_suffix(title, number)) in taken:
            number += 1
        numbers[owner, title] = number
        taken.add((owner, title_rules.add_suffix(title, number)))
        view.run(
            "UPDATE sessions SET title = :t WHERE id = :id", t=title_rules.add_suffix(title, number), id=session_id
        )


def _unique_title(view: View, title: str | None, owner: str | None) -> str | None:
    """The title of a session that gets an owner, numbered if the owner has another session of that title."""
    taken = "SELECT 1 FROM sessions WHERE title = :title AND owner = :owner"
    given, number = title, 1
    while owner is not None and given is not None and view.value(taken, title=given, owner=owner) is not None:
        number += 1
        given = title_rules.add_suffix(str(title), number)
    return given


def _assign_uids(view: View, condition: str) -> None:
    view.connection.create_scalar_function("derived_uid", _derived_uid, 6, deterministic=True)
    role, content = type_and_bytes("role"), type_and_bytes("content")
    view.run(f"""UPDATE messages SET uid = derived_uid(id, timestamp, {role}, {content})
                 WHERE uid IS NULL AND {condition}""")


def _derived_uid(*row: Any) -> str:
    message_id, timestamp, role_kind, role, kind, content = row
    return derived_uid(message_id, timestamp, decode_value(role_kind, role), decode_value(kind, content))


def _create_missing_sessions(view: View) -> None:
    view.run("""INSERT INTO sessions (id, source, started_at)
                SELECT m.session_id, 'unknown', MIN(m.timestamp)
                FROM messages m JOIN stale_sessions USING (session_id)
                WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = m.session_id) GROUP BY m.session_id""")


def _detach_orphaned_continuations(view: View) -> None:
    """Make continuations whose parent another program deleted sessions of their own."""
    beheaded = "child_kind = 'compression' AND parent_session_id IS NULL"
    view.run(f"INSERT OR IGNORE INTO stale_sessions SELECT id FROM sessions WHERE {beheaded}")
    view.run(f"UPDATE sessions SET child_kind = NULL, chain_root = NULL, listed = 1 WHERE {beheaded}")


def _set_kinds(view: View) -> None:
    rows = view.rows("""
        SELECT s.id, s.source, s.user_id, s.owner, s.model_config, s.parent_session_id,
               p.end_reason, s.started_at >= p.ended_at, s.started_at, s.title
        FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_session_id
        WHERE s.child_kind = '?' AND s.id IN (SELECT session_id FROM stale_sessions)""")
    kinds: dict[str, str | None] = {}
    followers: dict[str, list[tuple[bool, float, str]]] = {}
    for session_id, _, _, _, config, parent, end_reason, followed, started_at, _ in rows:
        kinds[session_id] = kind_from_markers(config, is_old=True)
        if parent is not None and kinds[session_id] is None:
            kinds[session_id] = kind_from_parent(end_reason)
            if kinds[session_id] == ChildKind.COMPRESSION:
                followers.setdefault(parent, []).append((bool(followed), started_at, session_id))
    for siblings in followers.values():
        # Old files do not say which child continues the parent: those that started after its end do. If there is none,
        # because the clock was set back, the newest does.
        continuations = {name for followed, _, name in siblings if followed} or {max(siblings)[2]}
        for _, _, name in siblings:
            if name not in continuations:
                kinds[name] = None
    for session_id, source, user_id, owner, _, parent, *_, title in rows:
        new_owner = owner or owner_column(source, user_id)
        view.run(
            "UPDATE sessions SET child_kind = :kind, listed = :listed, owner = :owner, title = :title WHERE id = :id",
            id=session_id,
            kind=kinds[session_id],
            listed=int(is_listed(parent, kinds[session_id])),
            owner=new_owner,
            title=title if new_owner == owner else _unique_title(view, title, new_owner),
        )


def _recount(view: View) -> None:
    view.run("""
        UPDATE sessions SET
            message_count = (SELECT count(*) FROM messages m WHERE m.session_id = sessions.id AND m.active = 1),
            last_active = COALESCE(
                (SELECT MAX(m.timestamp) FROM messages m WHERE m.session_id = sessions.id), started_at),
            tool_call_count = COALESCE((
                SELECT SUM(CASE WHEN NOT json_valid(tool_calls) OR json_type(tool_calls) <> 'array' THEN 1
                                ELSE json_array_length(tool_calls) END)
                FROM messages m WHERE m.session_id = sessions.id AND m.active = 1 AND m.tool_calls IS NOT NULL), 0)
        WHERE id IN (SELECT session_id FROM stale_sessions)""")
    view.run("DELETE FROM session_tools WHERE session_id IN (SELECT session_id FROM stale_sessions)")
    view.run("""
        INSERT INTO session_tools (session_id, tool_name, calls)
        SELECT session_id, tool, count(*) FROM (
            SELECT m.session_id,
                   COALESCE(json_extract(call.value, '$.function.name'), json_extract(call.value, '$.name')) AS tool
            FROM messages m, json_each(
                CASE WHEN json_valid(m.tool_calls) AND json_type(m.tool_calls) = 'array' THEN m.tool_calls ELSE '[]' END
            ) AS call
            WHERE m.tool_calls IS NOT NULL AND m.active = 1 AND call.type = 'object'
              AND m.session_id IN (SELECT session_id FROM stale_sessions))
        WHERE typeof(tool) = 'text' AND tool <> '' GROUP BY session_id, tool""")


def _set_previews(view: View) -> None:
    rows = view.rows("""
        SELECT stale.session_id, (
            SELECT m.content FROM messages m
            WHERE m.session_id = stale.session_id AND m.role = 'user' AND m.content IS NOT NULL AND m.active = 1
            ORDER BY m.id LIMIT 1)
        FROM stale_sessions stale""")
    for session_id, content in rows:
        preview = None if content is None else make_preview(decode_content(content))
        view.run("UPDATE sessions SET preview = :preview WHERE id = :id", id=session_id, preview=preview)


def _set_chains(view: View) -> None:
    """Store the root of every session of a compression chain, and the last activity of the chain in its root."""
    parents: dict[str, str] = dict(
        view.rows("SELECT id, parent_session_id FROM sessions WHERE child_kind = 'compression'")
    )
    for session_id in parents:
        root = first_of_chain(parents, session_id)
        if root != session_id:
            view.run("UPDATE sessions SET chain_root = :root WHERE id = :id", id=session_id, root=root)
    view.run("""
        UPDATE sessions SET chain_active = MAX(
            last_active,
            COALESCE((SELECT MAX(c.last_active) FROM sessions c WHERE c.chain_root = sessions.id), last_active))
        WHERE id IN (SELECT session_id FROM stale_sessions)
           OR id IN (SELECT s.chain_root FROM sessions s JOIN stale_sessions t ON t.session_id = s.id)""")
    view.run("""
        UPDATE sessions SET active_tick = CAST(MAX(-4.6e18, MIN(4.6e18, chain_active * 100)) AS INTEGER)
        WHERE active_tick IS NULL OR active_tick <> CAST(MAX(-4.6e18, MIN(4.6e18, chain_active * 100)) AS INTEGER)""")


def _add_opening_events(view: View) -> None:
    """Add an `opening` event for the difference between the counters and the sum of the events."""
    counters = (
        "api_call_count",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "estimated_cost_usd",
        "actual_cost_usd",
    )
    booked = "COALESCE((SELECT SUM(e.{0}) FROM usage_events e WHERE e.session_id = s.id), 0)"
    gaps = ", ".join(f"COALESCE(s.{name}, 0) - {booked.format(name)} AS {name}" for name in counters)
    view.run(f"""
        INSERT INTO usage_events (session_id, at, kind, model, billing_provider, {", ".join(counters)})
        SELECT id, started_at, 'opening', model, billing_provider, {", ".join(counters)}
        FROM (SELECT s.id, s.started_at, s.model, s.billing_provider, {gaps} FROM sessions s
              WHERE s.id IN (SELECT session_id FROM stale_sessions))
        WHERE {" OR ".join(f"ABS({name}) > 1e-12" for name in counters)}""")
