"""The floor: the cost of SQLite itself, without a session store around it."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock
from time import time
from typing import Any

import apsw

from bench.corpus import Message
from bench.store import Store

CHECKPOINT_EVERY = 50
BUSY_TIMEOUT_MS = 60_000
INDEX_BATCH = 512

_TABLE = """
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    role TEXT NOT NULL,
    content TEXT,
    tool_call_id TEXT,
    tool_calls TEXT,
    tool_name TEXT,
    timestamp REAL NOT NULL,
    token_count INTEGER,
    finish_reason TEXT
)
"""
_INSERT = """
INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count,
                      finish_reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_WORDS = "CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1)"
_TRIGRAMS = """
CREATE VIRTUAL TABLE trigrams USING fts5(text, content='', contentless_delete=1, tokenize='trigram', detail=none)
"""

Values = tuple[str | int | float | None, ...]


class RawStore(Store):
    """One table without any index, one transaction and one fsync per message."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._lock = Lock()
        self._writes = 0
        self._db = apsw.Connection(str(path))
        self._db.set_busy_timeout(BUSY_TIMEOUT_MS)
        for statement in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA wal_autocheckpoint = 0",
            _TABLE,
        ):
            self._run(statement)

    def create_session(self, session_id: str, source: str, user_id: str | None = None) -> None:
        """Do nothing: the floor has no sessions."""

    def append(self, session_id: str, message: Message) -> None:
        """Insert the row in its own transaction."""
        self.append_many(session_id, [message])

    def append_many(self, session_id: str, messages: list[Message]) -> None:
        """Insert the rows in one transaction."""
        with self._lock:
            self._run("BEGIN IMMEDIATE")
            self._insert(session_id, messages)
            self._run("COMMIT")
            self._writes += 1
            if self._writes % CHECKPOINT_EVERY == 0:
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _insert(self, session_id: str, messages: list[Message]) -> None:
        for message in messages:
            self._run(_INSERT, values_of(session_id, message))

    def count(self, session_id: str) -> int:
        """How many rows the session has."""
        count: int = self._db.execute("SELECT count(*) FROM messages WHERE session_id = ?", (session_id,)).get
        return count

    def close(self) -> None:
        """Close the connection; the last one checkpoints."""
        self._db.close()

    def _run(self, statement: str, values: Values = ()) -> None:
        self._db.execute(statement, values).fetchall()


class CountingStore(RawStore):
    """The table with one index, and a counter of each session's messages: what any list of sessions needs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._run("CREATE INDEX IF NOT EXISTS by_session ON messages (session_id, id)")
        self._run("CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, message_count INTEGER NOT NULL)")

    def create_session(self, session_id: str, source: str, user_id: str | None = None) -> None:
        """Insert the counter."""
        self._run("INSERT INTO sessions VALUES (?, 0)", (session_id,))

    def _insert(self, session_id: str, messages: list[Message]) -> None:
        super()._insert(session_id, messages)
        self._run("UPDATE sessions SET message_count = message_count + ? WHERE id = ?", (len(messages), session_id))


class LeanStore(RawStore):
    """The smallest store of the messages and both indexes, with the text stored once: the floor of size."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._run(_WORDS)
        self._run(_TRIGRAMS)
        self._indexed_upto = 0
        self._pending = 0

    def append_many(self, session_id: str, messages: list[Message]) -> None:
        """Insert the rows, and index them when a batch is full."""
        super().append_many(session_id, messages)
        self._pending += len(messages)
        while self._pending >= INDEX_BATCH:
            self._index_batch()

    def settle(self) -> None:
        """Index the rest."""
        while self._pending:
            self._index_batch()

    def close(self) -> None:
        """Index the rest and close."""
        self.settle()
        super().close()

    def _index_batch(self) -> None:
        rows: list[Any] = self._db.execute(
            """SELECT id, ifnull(content, '') || ' ' || ifnull(tool_name, '') || ' ' || ifnull(tool_calls, '')
               FROM messages WHERE id > ? ORDER BY id LIMIT ?""",
            (self._indexed_upto, INDEX_BATCH),
        ).fetchall()
        self._run("BEGIN IMMEDIATE")
        for row in rows:
            self._run("INSERT INTO words (rowid, text) VALUES (?, ?)", row)
        for row in rows:
            self._run("INSERT INTO trigrams (rowid, text) VALUES (?, ?)", row)
        self._run("COMMIT")
        self._indexed_upto = rows[-1][0]
        self._pending -= len(rows)


def values_of(session_id: str, message: Message) -> Values:
    """A message as a row of the floors."""
    calls = message.get("tool_calls")
    return (
        session_id,
        message["role"],
        message.get("content"),
        message.get("tool_call_id"),
        json.dumps(calls, ensure_ascii=False) if calls else None,
        message.get("tool_name"),
        message.get("timestamp") or time(),
        message.get("token_count"),
        message.get("finish_reason"),
    )
