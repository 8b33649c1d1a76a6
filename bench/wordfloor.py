"""The floor of search: one FTS5 table, queried as its documentation shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import apsw

from bench.corpus import Message
from bench.questions import LIMIT, Question
from bench.store import Answer, Store, Unsupported

_TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, source TEXT, user_id TEXT);
CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, session_id TEXT, timestamp REAL);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, tokenize='unicode61');
"""
_CACHE_KB = 16_384
"""The same cache size as our readers have."""

_unspaced = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class WordStore(Store):
    """The text of every message in an FTS5 table, and the columns for filters in another one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._db = apsw.Connection(str(path))
        self._db.execute(_TABLES).fetchall()
        self._db.execute(f"PRAGMA cache_size = -{_CACHE_KB}").fetchall()

    def create_session(self, session_id: str, source: str, user_id: str | None = None) -> None:
        """Store the owner of the session."""
        self._db.execute("INSERT INTO sessions VALUES (?, ?, ?)", (session_id, source, user_id)).fetchall()

    def append(self, session_id: str, message: Message) -> None:
        """Add one message durably."""
        self.append_many(session_id, [message])

    def append_many(self, session_id: str, messages: list[Message]) -> None:
        """Add several messages in one transaction."""
        self._db.execute("BEGIN IMMEDIATE").fetchall()
        for message in messages:
            self._db.execute(
                "INSERT INTO messages (session_id, timestamp) VALUES (?, ?)", (session_id, message.get("timestamp"))
            ).fetchall()
            values = (self._db.last_insert_rowid(), _text(message))
            self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", values).fetchall()
        self._db.execute("COMMIT").fetchall()

    def search(self, question: Question) -> Answer:
        """The best matches with a snippet, without neighbours."""
        if question.text.startswith("*"):
            raise Unsupported("no search inside of words")
        if _unspaced.search(question.text):
            raise Unsupported("a run of CJK characters is one word")
        conditions, values = ["words MATCH :text"], {"text": question.words_or}
        if question.owner is not None:
            conditions.append("source = :source AND user_id = :user")
            values |= {"source": question.owner[0], "user": question.owner[1]}
        if question.source is not None:
            conditions.append("source = :source")
            values["source"] = question.source
        order = "words.rowid DESC" if question.sort == "newest" else "rank"
        rows = self._db.execute(
            f"""SELECT messages.id, session_id, source, timestamp, snippet(words, 0, '>>>', '<<<', '...', 40)
                FROM words JOIN messages ON messages.id = words.rowid JOIN sessions ON sessions.id = session_id
                WHERE {" AND ".join(conditions)} ORDER BY {order} LIMIT {LIMIT}""",
            values,
        ).fetchall()
        return Answer(len(rows))

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _text(message: Message) -> str:
    calls = message.get("tool_calls")
    parts = (
        message.get("content"),
        message.get("tool_name"),
        json.dumps(calls, ensure_ascii=False) if calls else None,
    )
    return " ".join(part for part in parts if part)
