"""An old or foreign file shown as if it had today's tables, without changing it.

Temporary views of the same names stand before the file's own tables: a column that the file lacks is NULL, its default,
or worked out from what is there. So every reading operation works on every file.
"""

from __future__ import annotations

from typing import Any

import apsw

from hermes.state.kinds import LISTED_KINDS, ORPHAN_GUESS, TERMINAL_SOURCES
from hermes.state.rows import decode_content, encode_text, preview_of
from hermes.state.sqlite.connection import View

_MARKER = "CASE WHEN json_valid(s.model_config) THEN json_extract(s.model_config, '$.{key}') END"
_BRANCHED = _MARKER.format(key="_branched_from")
_DELEGATED = f"NULLIF({_MARKER.format(key='_delegate_from')}, '{ORPHAN_GUESS}')"
_KIND = f"""CASE
    WHEN {_BRANCHED} IS NOT NULL THEN 'branch'
    WHEN {_DELEGATED} IS NOT NULL THEN 'delegate'
    ELSE (SELECT CASE p.end_reason WHEN 'compression' THEN CASE WHEN s.started_at >= p.ended_at THEN 'compression' END
                                   WHEN 'branched' THEN 'branch' END
          FROM main.sessions p WHERE p.id = s.parent_session_id)
    END"""
_LAST_ACTIVE = "COALESCE((SELECT MAX(m.timestamp) FROM main.messages m WHERE m.session_id = s.id), s.started_at)"

_WORKED_OUT = {
    "sessions": {
        "child_kind": _KIND,
        "listed": f"""CASE WHEN {_DELEGATED} IS NOT NULL THEN 0 WHEN s.parent_session_id IS NULL THEN 1
                      ELSE COALESCE({_KIND} IN {tuple(map(str, LISTED_KINDS))}, 0) END""",
        "last_active": _LAST_ACTIVE,
        "chain_active": _LAST_ACTIVE,
        "owner": f"""CASE WHEN s.user_id IS NOT NULL AND s.source NOT IN {TERMINAL_SOURCES}
                     THEN s.source || ':' || s.user_id END""",
        "preview": """preview_of((SELECT m.content FROM main.messages m
                                  WHERE m.session_id = s.id AND m.role = 'user' AND m.content IS NOT NULL
                                  ORDER BY m.id LIMIT 1))""",
    }
}


def show_as_current(view: View, schema_sql: str) -> None:
    """Lay today's tables over those of the file."""
    view.connection.create_scalar_function("preview_of", _preview_of, 1)
    wanted = apsw.Connection(":memory:")
    wanted.execute(schema_sql).fetchall()
    model = View(wanted)
    for name, sql in model.rows("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%fts%'"):
        if name.startswith("sqlite_"):
            continue
        present = {row[1] for row in view.rows(f"PRAGMA main.table_info({name})")}
        if not present:
            view.run(sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            continue
        chosen = [
            f"s.{column}" if column in present else f"{_substitute(name, column, default)} AS {column}"
            for _, column, _, _, default, *_ in model.rows(f"PRAGMA table_info({name})")
        ]
        view.run(f"CREATE TEMP VIEW {name} AS SELECT {', '.join(chosen)} FROM main.{name} s")
    wanted.close()


def _preview_of(*stored: Any) -> str | None:
    return None if stored[0] is None else encode_text(preview_of(decode_content(stored[0])))


def _substitute(table: str, column: str, default: str | None) -> str:
    return _WORKED_OUT.get(table, {}).get(column) or default or "NULL"
