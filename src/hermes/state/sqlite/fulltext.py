"""The two full-text indexes: filled in batches behind the messages, up to a mark.

A message is in the index when its id is at or below `indexed_upto` and not in `stale_index`. Everything else is found
by looking at the few rows themselves, so nothing depends on when a batch runs.
"""

from __future__ import annotations

from typing import Any

from hermes.state.rows import decode_content, flatten_text
from hermes.state.sqlite.connection import View

BATCH = 512
INDEXED_UPTO = "indexed_upto"

MAX_TEXT = 1_000_000
TOOL_HEAD = 32_768
TOOL_TAIL = 8_192


def indexed_upto(view: View) -> int:
    """The id up to which messages are in the index."""
    return int(view.value("SELECT value FROM state_meta WHERE key = :key", key=INDEXED_UPTO) or 0)


def index_batch(view: View, limit: int = BATCH) -> int:
    """Index the next messages in the surrounding transaction and answer how many there were."""
    mark = indexed_upto(view)
    stale = view.rows(
        "SELECT message_id FROM stale_index WHERE message_id <= :mark LIMIT :limit", mark=mark, limit=limit
    )
    for (message_id,) in stale:
        _reindex(view, message_id)
    fresh = view.rows(
        """SELECT id, role, content, tool_name, tool_calls FROM messages
           WHERE id > :mark ORDER BY id LIMIT :limit""",
        mark=mark,
        limit=limit,
    )
    if fresh:
        _add(view, fresh)
        last = fresh[-1][0]
        view.run("UPDATE state_meta SET value = :value WHERE key = :key", key=INDEXED_UPTO, value=str(last))
        view.run("DELETE FROM stale_index WHERE message_id > :mark AND message_id <= :last", mark=mark, last=last)
    return len(stale) + len(fresh)


def index_text(role: str, content: Any, tool_name: str | None, tool_calls: str | None) -> str:
    """The text by which a message is found: what was said, the tool's name and the calls with their arguments."""
    said = flatten_text(decode_content(content))
    if role == "tool" and len(said) > TOOL_HEAD + TOOL_TAIL:
        said = f"{said[:TOOL_HEAD]} {said[-TOOL_TAIL:]}"
    # An old file may hold a number where a name should be.
    text = " ".join(str(part) for part in (said[:MAX_TEXT], tool_name, tool_calls) if part)
    return text if text.isascii() else text.encode(errors="replace").decode()


def _reindex(view: View, message_id: int) -> None:
    view.run("DELETE FROM messages_fts WHERE rowid = :id", id=message_id)
    view.run("DELETE FROM messages_fts_trigram WHERE rowid = :id", id=message_id)
    rows = view.rows("SELECT id, role, content, tool_name, tool_calls FROM messages WHERE id = :id", id=message_id)
    _add(view, rows)
    view.run("DELETE FROM stale_index WHERE message_id = :id", id=message_id)


def _add(view: View, rows: list[tuple[Any, ...]]) -> None:
    texts = [(row[0], index_text(*row[1:])) for row in rows]
    for table in ("messages_fts", "messages_fts_trigram"):
        view.connection.executemany(f"INSERT INTO {table}(rowid, content) VALUES (?, ?)", texts).fetchall()
