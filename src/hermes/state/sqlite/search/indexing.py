"""Filling the full-text indexes with the text, role, session, source and owner of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hermes.query import analyze
from hermes.state.indexing.indexed_text import search_text
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.search import trigrams
from hermes.state.sqlite.search.expression import facet_word
from hermes.state.sqlite.search.index_state import BATCH, INDEXED_UPTO, TABLES, indexed_upto

MESSAGE = """SELECT m.id, m.timestamp, m.role, m.session_id, s.source, s.owner, m.content, m.tool_name, m.tool_calls
              FROM messages m LEFT JOIN sessions s ON s.id = m.session_id"""
"""The columns of a message that go into the indexes."""

ORDINARY_BYTES = 1_024
"""The text of a message of ordinary length; a batch has no more text than so many ordinary messages."""
_TEXT_BYTES = "COALESCE(octet_length(m.content), 0) + COALESCE(octet_length(m.tool_calls), 0)"
END = f"""SELECT MAX(id) FROM (
    SELECT id, SUM(bytes) OVER (ORDER BY id) - bytes AS bytes_before FROM (
        SELECT m.id, {_TEXT_BYTES} AS bytes FROM messages m WHERE m.id > :mark ORDER BY m.id LIMIT :limit))
    WHERE bytes_before < :bytes"""
"""The last message of the next batch."""
STALE = f"""SELECT id FROM (
    SELECT id, SUM(bytes) OVER (ORDER BY id) - bytes AS bytes_before FROM (
        SELECT t.message_id AS id, {_TEXT_BYTES} AS bytes
        FROM stale_index t LEFT JOIN messages m ON m.id = t.message_id
        WHERE t.message_id <= :mark ORDER BY t.message_id LIMIT :limit))
    WHERE bytes_before < :bytes"""
"""The messages of the next batch that were changed since they were indexed."""
MERGED_SHARE = 3 / 8
"""How many pages of each index are merged for every message that is added: about as many as adding it needs in all."""
MERGED_AT_ONCE = 16


def index_batch(view: View, limit: int = BATCH, *, step: int = BATCH, stop: Callable[[], bool] | None = None) -> int:
    """Index the next messages in the surrounding transaction and return how many there were.

    There are fewer than `limit` if they are longer than most messages. After each `step` messages, fewer if they are
    long, `stop` is asked whether to leave the others for later.
    """
    mark = indexed_upto(view)
    stale = view.rows(STALE, mark=mark, limit=limit, bytes=limit * ORDINARY_BYTES)
    for (message_id,) in stale:
        _reindex(view, message_id)
    end = view.value(END, mark=mark, limit=limit, bytes=limit * ORDINARY_BYTES)
    fresh = (
        []
        if end is None
        else view.rows(f"{MESSAGE} WHERE m.id > :mark AND m.id <= :end ORDER BY m.id", mark=mark, end=end)
    )
    if fresh:
        at = 0
        for size in _steps(fresh, step):
            add(view, fresh[at : at + size])
            at += size
            if stop is not None and stop():
                break
        del fresh[at:]
        _merge_some(view, int(len(fresh) * MERGED_SHARE))
        last = fresh[-1][0]
        # An old file may hold anything where a time should be.
        moments = [row[1] for row in fresh if isinstance(row[1], int | float)] or [0.0]
        view.run(
            """INSERT OR REPLACE INTO message_times (first_id, last_id, oldest, newest)
               VALUES (:first, :last, :oldest, :newest)""",
            first=mark + 1,
            last=last,
            oldest=min(moments),
            newest=max(moments),
        )
        view.run("UPDATE state_meta SET value = :value WHERE key = :key", key=INDEXED_UPTO, value=str(last))
        view.run("DELETE FROM stale_index WHERE message_id > :mark AND message_id <= :last", mark=mark, last=last)
    return len(stale) + len(fresh)


def _steps(rows: Sequence[tuple[Any, ...]], most: int) -> Iterator[int]:
    """Yield how many rows each step has: at most `most`, fewer if they are long, at least one."""
    size = text = 0
    for *_, content, _, tool_calls in rows:
        length = len(content or "") + len(tool_calls or "")
        if size and (size == most or text + length > most * ORDINARY_BYTES):
            yield size
            size = text = 0
        size, text = size + 1, text + length
    if size:
        yield size


def word_text(role: str, session_id: str, source: str | None, owner: str | None, text: str) -> str:
    """The text of a message in the word index: words for role, session, source and owner, then its own words."""
    facets = [analyze.GAP * 2, facet_word("r", role), facet_word("i", session_id)]
    if source is not None:
        facets.append(facet_word("s", source))
    if owner is not None:
        facets.append(facet_word("o", owner))
    return " ".join(facets) + analyze.stream(text)


def merge(view: View) -> bool:
    """Merge a small part of the indexes in the surrounding transaction, and return whether there may be more."""
    before = view.connection.total_changes()
    _merge_some(view, MERGED_AT_ONCE)
    # FTS5's documentation: a merge that found nothing to do makes at most one change.
    return view.connection.total_changes() - before >= 2 * len(TABLES)


def _merge_some(view: View, pages: int) -> None:
    for table in TABLES:
        view.run(f"INSERT INTO {table}({table}, rank) VALUES ('merge', :pages)", pages=max(1, pages))


def _reindex(view: View, message_id: int) -> None:
    for table in TABLES:
        view.run(f"DELETE FROM {table} WHERE rowid = :id", id=message_id)
    rows = view.rows(f"{MESSAGE} WHERE m.id = :id", id=message_id)
    add(view, rows)
    for row in rows:
        view.run(
            """UPDATE message_times SET oldest = MIN(oldest, :moment), newest = MAX(newest, :moment)
               WHERE first_id = (SELECT MAX(first_id) FROM message_times WHERE first_id <= :id)""",
            moment=row[1],
            id=message_id,
        )
    view.run("DELETE FROM stale_index WHERE message_id = :id", id=message_id)


def add(view: View, rows: list[tuple[Any, ...]], tables: Sequence[str] = TABLES) -> None:
    """Add rows of `MESSAGE` to the word index and to the trigram index."""
    words, parts = [], []
    for message_id, _, role, session_id, source, owner, *content in rows:
        text = search_text(role, *content)
        words.append((message_id, word_text(role, session_id, source, owner, text)))
        parts.append((message_id, trigrams.trigram_text(text)))
    for table, texts in zip(tables, (words, parts), strict=True):
        view.connection.executemany(f"INSERT INTO {table}(rowid, content) VALUES (?, ?)", texts).fetchall()
