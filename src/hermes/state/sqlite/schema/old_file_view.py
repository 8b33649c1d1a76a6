"""An old file, or one of another program, read as if it had today's tables, without changing it.

Temporary views hide the tables of the same names: a column that the file lacks is NULL, its default, or computed from
other columns. So every reading operation works on every file.
"""

from __future__ import annotations

from typing import Any

import apsw

from hermes.state.owner import owner_column
from hermes.state.rows import decode_content, encode_text, make_preview
from hermes.state.sessions.lineage.kinds import LISTED_KINDS, ORPHAN_GUESS, roots_of_chains
from hermes.state.sqlite.connection import View, connect
from hermes.state.sqlite.invalid_utf8 import decode_value

_MARKER = "CASE WHEN json_valid(s.model_config) THEN json_extract(s.model_config, '$.{key}') END"
_BRANCHED = _MARKER.format(key="_branched_from")
_DELEGATED = f"NULLIF({_MARKER.format(key='_delegate_from')}, '{ORPHAN_GUESS}')"
_KIND = f"""CASE
    WHEN {_BRANCHED} IS NOT NULL THEN 'branch'
    WHEN {_DELEGATED} IS NOT NULL THEN 'delegate'
    ELSE (SELECT CASE p.end_reason WHEN 'compression' THEN CASE WHEN s.started_at >= p.ended_at THEN 'compression' END
                                   WHEN 'branched' THEN 'branch' WHEN 'session_reset' THEN 'reset' END
          FROM main.sessions p WHERE p.id = s.parent_session_id)
    END"""
_LAST_ACTIVE = "COALESCE((SELECT MAX(m.timestamp) FROM main.messages m WHERE m.session_id = s.id), s.started_at)"

_MESSAGES = "(SELECT count(*) FROM main.messages m WHERE m.session_id = s.id {visible})"
"""Counted, because the counters of other programs include undone messages or are wrong."""
_CHAIN_ACTIVE = f"COALESCE((SELECT c.active FROM chains c WHERE c.id = s.id), {_LAST_ACTIVE})"

_COMPUTED_COLUMNS = {
    "sessions": {
        "child_kind": _KIND,
        "listed": f"""CASE WHEN {_DELEGATED} IS NOT NULL THEN 0 WHEN s.parent_session_id IS NULL THEN 1
                      ELSE COALESCE({_KIND} IN {tuple(map(str, LISTED_KINDS))}, 0) END""",
        "last_active": _LAST_ACTIVE,
        "message_count": _MESSAGES,
        "chain_root": "(SELECT NULLIF(c.root, s.id) FROM chains c WHERE c.id = s.id)",
        "chain_active": _CHAIN_ACTIVE,
        "active_tick": f"CAST(MAX(-4.6e18, MIN(4.6e18, {_CHAIN_ACTIVE} * 100)) AS INTEGER)",
        "owner": "owner_column(s.source, s.user_id)",
        "preview": """preview_of((SELECT CAST(m.content AS BLOB) FROM main.messages m
                                  WHERE m.session_id = s.id AND m.role = 'user' AND m.content IS NOT NULL {visible}
                                  ORDER BY m.id LIMIT 1))""",
    }
}


def show_as_current(view: View, schema_sql: str) -> None:
    """Create temporary views and tables so that the file reads as if it had today's tables."""
    view.connection.create_scalar_function("preview_of", _preview_of, 1)
    view.connection.create_scalar_function("owner_column", _owner_column, 2)
    wanted = connect(":memory:", apsw.SQLITE_OPEN_READWRITE)
    wanted.execute(schema_sql).fetchall()
    model = View(wanted)
    for name, sql in _tables(model):
        present = _columns(view, name)
        if not present:
            view.run(sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            continue
        if name == "sessions":
            _find_chains(view, present)
            present.discard("message_count")
        visible = "AND m.active = 1" if "active" in _columns(view, "messages") else ""
        chosen = [
            f"s.{column}" if column in present else f"{_substitute(name, column, default, visible)} AS {column}"
            for _, column, _, _, default, *_ in model.rows(f"PRAGMA table_info({name})")
        ]
        view.run(f"CREATE TEMP VIEW {name} AS SELECT {', '.join(chosen)} FROM main.{name} s")
    wanted.close()


def add_missing(view: View, schema_sql: str) -> None:
    """Create temporary views and tables for the migrations that a file of ours lacks: no rows, columns NULL."""
    wanted = connect(":memory:", apsw.SQLITE_OPEN_READWRITE)
    wanted.execute(schema_sql).fetchall()
    model = View(wanted)
    for name, sql in _tables(model):
        present = _columns(view, name)
        missing = [each for each in _columns(model, name) if each not in present]
        if not present:
            view.run(sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
        elif missing:
            added = ", ".join(f"NULL AS {column}" for column in missing)
            view.run(f"CREATE TEMP VIEW {name} AS SELECT s.*, {added} FROM main.{name} s")
    wanted.close()


def _tables(model: View) -> list[tuple[str, str]]:
    rows = model.rows("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%fts%'")
    return [(name, sql) for name, sql in rows if not name.startswith("sqlite_")]


def _find_chains(view: View, present: set[str]) -> None:
    """Store in a temporary table which sessions continue which by compression, once for this connection."""
    view.run("CREATE TEMP TABLE chains (id TEXT PRIMARY KEY, root TEXT, active REAL)")
    if not {"parent_session_id", "end_reason", "model_config"} <= present:
        return
    parents: dict[str, str] = dict(
        view.rows(f"""SELECT s.id, s.parent_session_id FROM main.sessions s
                      WHERE s.parent_session_id IS NOT NULL AND {_KIND} = 'compression'""")
    )
    for session_id, root in roots_of_chains(parents).items():
        view.run("INSERT INTO chains (id, root) VALUES (:id, :root)", id=session_id, root=root)
    view.run("CREATE INDEX chains_by_root ON chains (root)")
    view.run(f"UPDATE chains SET active = (SELECT {_LAST_ACTIVE} FROM main.sessions s WHERE s.id = chains.id)")
    view.run("""UPDATE chains SET active = (SELECT MAX(c.active) FROM chains c WHERE c.root = chains.id)
                WHERE id = root""")


def _columns(view: View, table: str) -> set[str]:
    return {row[1] for row in view.rows(f"PRAGMA main.table_info({table})")}


def _preview_of(*stored: Any) -> str | None:
    content = decode_value("text", stored[0]) if isinstance(stored[0], bytes) else None
    return None if content is None else encode_text(make_preview(decode_content(content)))


def _owner_column(*stored: Any) -> str | None:
    source, user_id = (each if each is None else str(each) for each in stored)
    return owner_column(source or "", user_id)


def _substitute(table: str, column: str, default: str | None, visible: str) -> str:
    return (_COMPUTED_COLUMNS.get(table, {}).get(column) or default or "NULL").replace("{visible}", visible)
