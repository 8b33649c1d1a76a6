"""Updates the full-text index, a batch at a time, after the messages are stored.

A message is in the index when its id is at or below `indexed_upto` and not in `stale_index`. An id is assigned before
its message is committed, so the mark may only pass ids whose transactions have ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from hermes.query.analyze import GAP
from hermes.state.indexing.indexed_text import search_text
from hermes.state.operations import chunks
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.postgres.search.document import Vector, array, findable_words, vector
from hermes.state.server.search.asking import EPOCH, INDEXED_UPTO
from hermes.state.server.search.index_rows import (
    BATCH_BYTES,
    MESSAGES,
    TEXT_BYTES,
    WORDS_EPOCH,
    add_time_range,
    assign_uids,
    read_marks,
    within_bytes,
    write_mark,
)

DUE = 256
"""This many waiting messages start a batch; each search reads fewer of them directly."""
BATCH, BULK, BACKLOG = 512, 2_048, 8_192
"""How many messages one transaction indexes, and how many if more than a backlog waits. Larger batches are less work
for the server, but it takes longer until their messages can be changed."""
SETTLE_S, SETTLE_PAUSE_S = 0.5, 0.002
"""How long a batch waits for transactions that may still commit one of its ids, and the pause between two checks."""
MOST_KNOWN = 400_000
"""How many words are remembered as known, so that they are not sent again."""
WASTE, ALIVE, SOME_WORDS = 64, 1_000, 200
"""How many deleted messages' words a batch checks, in how many of the newest messages it looks for them first, and how
many words one statement checks."""

_LOCK = """SELECT pg_try_advisory_xact_lock(
    (CAST(1212501325 AS bigint) << 32) + CAST(CAST(CAST('message_words' AS regclass) AS oid) AS bigint))"""
# A transaction that adds messages locks a session before it gets an id.
_WRITERS = """SELECT DISTINCT virtualtransaction FROM pg_locks
              WHERE locktype = 'relation' AND pid <> pg_backend_pid()
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (relation = CAST('messages' AS regclass) AND mode = 'RowExclusiveLock'
                     OR relation = CAST('sessions' AS regclass) AND mode = 'RowShareLock')"""
_ADD_WORDS = """INSERT INTO known_words (word) SELECT unnest(CAST(:words AS text[])) ON CONFLICT DO NOTHING"""
_ADD_ENTRIES = """INSERT INTO message_words (message_id, words)
                  SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:vectors AS tsvector[]))
                  ON CONFLICT (message_id) DO UPDATE SET words = excluded.words"""
_TIDY = """SELECT gin_clean_pending_list(CAST(oid AS regclass)) FROM pg_class
           WHERE oid = CAST('idx_message_words' AS regclass) AND pg_has_role(relowner, 'USAGE')"""


class Batch(NamedTuple):
    """The result of a batch."""

    messages: int = 0
    upto: int | None = None
    """The id up to which messages are indexed now; None if another process is indexing."""
    words: frozenset[str] = frozenset()
    """Words that are known now."""
    words_epoch: int = 0
    has_more: bool = False


class Indexer:
    """Updates the index of one store; what it remembers between batches only saves work."""

    due = DUE

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._words_epoch = -1
        self._ahead: dict[int, tuple[Row, Vector]] = {}
        """Entries of the next messages, each with the row that it was made of."""

    def batch(self, tx: PostgresTransaction) -> Batch:
        """Index the next messages in the surrounding transaction, unless another process is indexing."""
        if not tx.value(_LOCK):
            return Batch()
        marks = read_marks(tx)
        mark, words_epoch = marks[INDEXED_UPTO], marks[WORDS_EPOCH]
        stale = _stale_rows(tx, mark)
        upto, fresh, has_more = _fresh_rows(tx, mark, BACKLOG if not self._ahead else 0)
        next_rows = _rows_after(tx, upto) if len(fresh) > BATCH else []
        words = self._add(tx, [*stale.rows, *fresh], next_rows, words_epoch)
        if stale.rows:
            _widen_time_ranges(tx, stale.rows)
        if fresh:
            add_time_range(tx, mark + 1, upto, fresh)
        if upto > mark:
            write_mark(tx, INDEXED_UPTO, upto)
        waste = _forget_words(tx, upto)
        if waste.is_forgotten:
            # Other processes may remember words that are no longer known.
            words_epoch += 1
            write_mark(tx, WORDS_EPOCH, words_epoch)
        has_more = has_more or stale.has_more or waste.messages == WASTE
        return Batch(len(stale.rows) + len(fresh), upto, words, words_epoch, has_more)

    def remember_words(self, done: Batch) -> None:
        """Remember the words of a batch that is committed."""
        if done.words_epoch != self._words_epoch or len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._words_epoch = done.words_epoch
        self._known |= done.words

    def _add(
        self, tx: PostgresTransaction, rows: Sequence[Row], next_rows: Sequence[Row], words_epoch: int
    ) -> frozenset[str]:
        """Index messages, and analyze the next ones while the server works; return the words that are known now."""
        if not rows:
            return frozenset()
        entries = [self._entry(row) for row in rows]
        words = frozenset(findable_words(entries))
        new_words = sorted(words - self._known if words_epoch == self._words_epoch else words)
        tx.run_together(
            [
                (_ADD_WORDS, {"words": array(new_words)}),
                (_ADD_ENTRIES, {"ids": array(str(row[0]) for row in rows), "vectors": array(e.text for e in entries)}),
                (_TIDY, {}),
            ],
            meanwhile=lambda: self._analyze_ahead(next_rows),
        )
        assign_uids(tx, rows)
        return words

    def _entry(self, row: Row) -> Vector:
        """The entry of a message, which may have been made ahead; the row may have changed since."""
        row_ahead, entry = self._ahead.get(row[0], (None, None))
        return entry if entry is not None and row_ahead == row else _entry_of(row)

    def _analyze_ahead(self, rows: Sequence[Row]) -> None:
        self._ahead = {row[0]: (row, _entry_of(row)) for row in rows}

    def clear_index(self, tx: PostgresTransaction, epoch: int) -> bool:
        """Empty the index in the surrounding transaction; return False if another process did so since `epoch`."""
        if read_marks(tx)[EPOCH] != epoch:
            return False
        tx.run("TRUNCATE message_words, known_words, forgotten_words, stale_index, message_times")
        for key, value in ((INDEXED_UPTO, 0), (EPOCH, epoch + 1), (WORDS_EPOCH, read_marks(tx)[WORDS_EPOCH] + 1)):
            write_mark(tx, key, value)
        return True

    def waiting(self, tx: PostgresTransaction) -> int:
        """The approximate number of messages that are not indexed yet."""
        newest = tx.value("SELECT MAX(id) FROM messages") or 0
        stale = tx.value("SELECT count(*) FROM stale_index")
        return int(max(0, newest - read_marks(tx)[INDEXED_UPTO]) + stale)


Row = tuple[Any, ...]


class Stale(NamedTuple):
    """Messages that were changed since they were indexed."""

    rows: list[Row]
    has_more: bool


class UnusedWords(NamedTuple):
    """The result of checking the words of deleted messages."""

    messages: int
    """How many messages were checked."""
    is_forgotten: bool
    """Whether a word was removed from the known ones."""


def _stale_rows(tx: PostgresTransaction, mark: int) -> Stale:
    """Read messages that were changed since they were indexed, locked so that they do not change before the commit."""
    waiting = tx.rows(
        """SELECT message_id FROM stale_index WHERE message_id <= :mark
           UNION SELECT id FROM messages WHERE uid IS NULL AND id <= :mark ORDER BY 1 LIMIT :limit""",
        mark=mark,
        limit=BATCH,
    )
    if not waiting:
        return Stale([], has_more=False)
    ids = within_bytes(tx, [row[0] for row in waiting])
    listed = array(str(each) for each in ids)
    rows = tx.rows(f"{MESSAGES} WHERE m.id = ANY(CAST(:ids AS bigint[])) ORDER BY m.id FOR SHARE OF m", ids=listed)
    tx.run("DELETE FROM stale_index WHERE message_id = ANY(CAST(:ids AS bigint[]))", ids=listed)
    return Stale(rows, has_more=len(waiting) == BATCH or len(ids) < len(waiting))


def _entry_of(row: Row) -> Vector:
    message_id, _, _, role, session_id, source, owner, *content = row
    return vector(message_id, role, session_id, source, owner, search_text(role, *content))


def _rows_after(tx: PostgresTransaction, upto: int) -> list[Row]:
    """Read the messages that the next batch probably indexes."""
    end = _end_of_batch(tx, upto, BULK)
    return tx.rows(f"{MESSAGES} WHERE m.id > :upto AND m.id <= :end ORDER BY m.id", upto=upto, end=end or upto)


def _end_of_batch(tx: PostgresTransaction, mark: int, limit: int) -> int | None:
    """Return the last id of the next batch: of so many messages, fewer if they have much text; None without any."""
    end = tx.value(
        f"""SELECT MAX(id) FROM (
                SELECT id, SUM(bytes) OVER (ORDER BY id) - bytes AS bytes_before FROM (
                    SELECT m.id, {TEXT_BYTES} AS bytes FROM messages m WHERE m.id > :mark ORDER BY m.id LIMIT :limit
                ) AS next
            ) AS summed WHERE bytes_before < :bytes""",
        mark=mark,
        limit=limit,
        bytes=BATCH_BYTES,
    )
    return None if end is None else int(end)


def _fresh_rows(tx: PostgresTransaction, mark: int, backlog: int) -> tuple[int, list[Row], bool]:
    """Return the id up to which no other messages will appear, the messages up to there, and whether more wait.

    More messages are returned if a backlog waits. If the id is not known yet, it is `mark`, and there are no messages.
    """
    newest = tx.value("SELECT MAX(id) FROM messages") or mark
    upto = _end_of_batch(tx, mark, BULK if newest - mark > backlog else BATCH)
    if upto is None or not _is_settled(tx):
        return mark, [], False
    span = {"mark": mark, "upto": upto}
    # Rows that are being changed or deleted are left for later; waiting for them might be a deadlock.
    rows = tx.rows(f"{MESSAGES} WHERE m.id > :mark AND m.id <= :upto ORDER BY m.id FOR SHARE OF m SKIP LOCKED", **span)
    tx.run("DELETE FROM stale_index WHERE message_id > :mark AND message_id <= :upto", **span)
    every = tx.rows("SELECT id FROM messages WHERE id > :mark AND id <= :upto", **span)
    if len(every) > len(rows):
        left = {row[0] for row in every} - {row[0] for row in rows}
        insert = tx.dialect.insert_or_ignore("stale_index", ["message_id"])
        tx.run_many(insert, [{"message_id": each} for each in left])
    return upto, rows, upto < newest


def _is_settled(tx: PostgresTransaction) -> bool:
    """Wait for transactions that are adding messages now: they may have lower ids than the visible messages."""
    writers = set(tx.rows(_WRITERS))
    deadline = time.monotonic() + SETTLE_S
    while writers and time.monotonic() < deadline:
        time.sleep(SETTLE_PAUSE_S)
        writers &= set(tx.rows(_WRITERS))
    return not writers


def _widen_time_ranges(tx: PostgresTransaction, rows: Sequence[Row]) -> None:
    """Widen the time ranges for changed messages; a message before all ranges gets its own."""
    for row in rows:
        changed = tx.run(
            """UPDATE message_times SET oldest = LEAST(oldest, :moment), newest = GREATEST(newest, :moment)
               WHERE first_id = (SELECT MAX(first_id) FROM message_times WHERE first_id <= :id)""",
            id=row[0],
            moment=row[1],
        )
        if not changed:
            add_time_range(tx, row[0], row[0], [row])


def _forget_words(tx: PostgresTransaction, upto: int) -> UnusedWords:
    """Remove the words of some deleted messages that no other message has."""
    waste = tx.rows("SELECT id FROM forgotten_words ORDER BY id LIMIT :limit", limit=WASTE)
    if not waste:
        return UnusedWords(0, is_forgotten=False)
    last = waste[-1][0]
    words = _words_in(tx, "forgotten_words WHERE id <= :last", last=last)
    # Most words are common and are in the newest messages; a search for every message with a word would take long.
    rest = sorted(words - _words_in(tx, "message_words WHERE message_id > :low", low=upto - ALIVE))
    forgotten = 0
    for some in chunks(rest, SOME_WORDS):
        forgotten += tx.run(
            """DELETE FROM known_words k WHERE k.word = ANY(CAST(:words AS text[])) AND NOT EXISTS (
                   SELECT 1 FROM message_words m WHERE m.words @@ CAST('''' || k.word || '''' AS tsquery))""",
            words=array(some),
        )
    tx.run("DELETE FROM forgotten_words WHERE id <= :last", last=last)
    return UnusedWords(len(waste), is_forgotten=forgotten > 0)


def _words_in(tx: PostgresTransaction, rows: str, **values: int) -> set[str]:
    """The words in some index rows, without marks."""
    found = tx.rows(f"SELECT DISTINCT lexeme FROM (SELECT words FROM {rows}) AS chosen, unnest(chosen.words)", **values)
    return {row[0] for row in found if not row[0].startswith(GAP)}
