"""Checks of the upgrade tests: files are read without code of the project."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from tests.support.plainsql import plain, rows
from tests.upgrade.corpus import Expected, Session
from tests.upgrade.oldfiles import read_plainly

ROOT = Path(__file__).parents[2]
FTS_TABLES = ("messages_fts", "messages_fts_trigram")


def digest(path: Path) -> str:
    """The checksum of a file; only for a file that this process does not have open."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def environment() -> dict[str, str]:
    """The environment for a process that uses the project and these tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}


def backups(path: Path) -> list[Path]:
    """The copies that upgrades of a file left next to it."""
    return sorted(path.parent.glob(f"{path.name}.pre-*"))


def assert_nothing_lost(path: Path, expected: Expected) -> None:
    """Assert that every session, message and note of an old file is in the upgraded one, value by value."""
    now = read_plainly(path)
    assert now.version == 11
    assert now.messages == expected.messages
    assert now.sessions == expected.sessions
    assert now.meta.items() >= expected.meta.items()


def assert_sound(path: Path) -> None:
    """Assert that the tables of sessions and messages are undamaged, on disk and in their indexes."""
    with plain(path) as connection:
        for table in ("sessions", "messages"):
            assert connection.execute(f"PRAGMA integrity_check({table})").fetchall() == [("ok",)]


def indexed(path: Path, table: str) -> list[int]:
    """The ids of the messages that a full-text table has rows for."""
    return [int(row[0]) for row in rows(path, f"SELECT id FROM {table}_docsize ORDER BY id")]


def matching(path: Path, table: str, word: str) -> list[int]:
    """The ids of the messages that a full-text table finds for a word; trigrams have no order."""
    parts = [word[i : i + 3] for i in range(len(word) - 2)] if table.endswith("trigram") else [word]
    query = " AND ".join(f'"{part}"' for part in parts)
    return [int(row[0]) for row in rows(path, f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid", query)]


def schema_of(path: Path) -> dict[str, Any]:
    """The schema of a file in a form that ignores the order of columns and the layout of the SQL."""
    with plain(path) as connection:
        found: dict[str, Any] = {}
        objects = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
        for kind, name, sql in objects:
            if kind == "table" and "VIRTUAL" not in str(sql):
                columns = connection.execute(
                    f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{name}')"
                )
                found[f"{kind} {name}"] = sorted(columns.fetchall(), key=str)
            else:
                found[f"{kind} {name}"] = _normal(str(sql))
        return found


def expected_counters(expected: Expected, session: Session) -> tuple[int, int, float]:
    """Messages, tool calls and last activity of a session, counted from the input."""
    messages = expected.messages.get(session.id, ())
    active = [message for message in messages if message.active]
    calls = sum(len(message.tool_calls) for message in active if isinstance(message.tool_calls, list))
    return len(active), calls, max((message.timestamp for message in messages), default=session.started_at)


def _normal(sql: str) -> str:
    return re.sub(r"\s+", "", sql.replace("IF NOT EXISTS", "")).lower()
