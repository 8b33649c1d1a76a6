"""MessageIndexer the full-text index, a batch at a time, behind the messages.

A message is in the index when its id is at or below `indexed_upto` and not in `stale_index`. An id is given out before
its message is committed, so the mark may only pass ids whose transactions have ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from hermes.query.analyze import GAP
from hermes.state.operations import chunks
from hermes.state.postgres.connection.transaction import PostgresTransaction
from hermes.state.postgres.search.document import array, vector
from hermes.state.rows import derived_uid
from hermes.state.search.indexed_text import search_text
from hermes.state.server.search.asking import EPOCH, INDEXED_UPTO

DUE = 256
"""So many waiting messages are indexed; fewer are looked at by each search."""
BATCH = 512
"""No more than this are indexed in one transaction."""
SETTLE_S, SETTLE_PAUSE_S = 0.5, 0.002
"""How long a batch waits for transactions that may yet commit one of its ids, and between two looks."""
WORDS_EPOCH = "words_epoch"
MOST_KNOWN = 400_000
"""How many words are remembered as known, so that they need not be sent."""
WASTE, ALIVE, SOME_WORDS = 64, 1_000, 200
"""Of how many deleted messages the words are looked at in a batch, in how many of the newest messages they are looked
for first, and how many of them at a time."""

_LOCK = """SELECT pg_try_advisory_xact_lock(
    (CAST(1212501325 AS bigint) << 32) + CAST(CAST(CAST('message_words' AS regclass) AS oid) AS bigint))"""
_MESSAGE = """SELECT m.id, m.timestamp, m.uid, m.role, m.session_id, s.source, s.owner, m.content, m.tool_name,
                     m.tool_calls
              FROM messages m LEFT JOIN sessions s ON s.id = m.session_id"""
# Whoever is going to add messages has locked a session before an id was given out.
_WRITERS = """SELECT DISTINCT virtualtransaction FROM pg_locks
              WHERE locktype = 'relation' AND pid <> pg_backend_pid()
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (relation = CAST('messages' AS regclass) AND mode = 'RowExclusiveLock'
                     OR relation = CAST('sessions' AS regclass) AND mode = 'RowShareLock')"""
_TIDY = """SELECT gin_clean_pending_list(CAST(oid AS regclass)) FROM pg_class
           WHERE oid = CAST('idx_message_words' AS regclass) AND pg_has_role(relowner, 'USAGE')"""


class Batch(NamedTuple):
    """What a batch did."""

    messages: int = 0
    upto: int | None = None
    """The id up to which messages are in the index now; None: somebody else is at it."""
    words: frozenset[str] = frozenset()
    """Words that are known now."""
    words_epoch: int = 0
    has_more: bool = False


class Indexer:
    """Fills the index of one store; what it remembers between batches only saves work."""

    due = DUE

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._words_epoch = -1

    def batch(self, tx: PostgresTransaction) -> Batch:
        """Index the next messages in the surrounding transaction, unless somebody else is at it."""
        if not tx.value(_LOCK):
            return Batch()
        marks = _read_marks(tx)
        mark, words_epoch = marks[INDEXED_UPTO], marks[WORDS_EPOCH]
        words: set[str] = set()
        stale = _stale_rows(tx, mark)
        if stale:
            self._add(tx, stale, words, words_epoch)
            _widen_time_ranges(tx, stale)
        upto, fresh = _fresh_rows(tx, mark)
        if fresh:
            self._add(tx, fresh, words, words_epoch)
            _add_time_range(tx, mark + 1, upto, fresh)
        if upto > mark:
            _write_mark(tx, INDEXED_UPTO, upto)
        if stale or fresh:
            tx.value(_TIDY)
        waste = _forget_words(tx, upto)
        if waste.is_forgotten:
            # What others remember as known may not be any more.
            words_epoch += 1
            _write_mark(tx, WORDS_EPOCH, words_epoch)
        has_more = max(len(stale), len(fresh)) == BATCH or waste.messages == WASTE
        return Batch(len(stale) + len(fresh), upto, frozenset(words), words_epoch, has_more)

    def remember_words(self, done: Batch) -> None:
        """Remember the words of a batch that is committed."""
        if done.words_epoch != self._words_epoch or len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._words_epoch = done.words_epoch
        self._known |= done.words

    def _add(self, tx: PostgresTransaction, rows: Sequence[Row], words: set[str], words_epoch: int) -> None:
        known = self._known if words_epoch == self._words_epoch else frozenset()
        vectors = []
        for message_id, _, _, role, session_id, source, owner, *said in rows:
            entry = vector(message_id, role, session_id, source, owner, search_text(role, *said))
            vectors.append(entry.text)
            words.update(entry.words)
        fresh = sorted(words - known)
        if fresh:
            tx.run(
                """INSERT INTO known_words (word) SELECT unnest(CAST(:words AS text[])) ON CONFLICT DO NOTHING""",
                words=array(fresh),
            )
        tx.run(
            """INSERT INTO message_words (message_id, words)
               SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:vectors AS tsvector[]))
               ON CONFLICT (message_id) DO UPDATE SET words = excluded.words""",
            ids=array(str(row[0]) for row in rows),
            vectors=array(vectors),
        )
        _assign_uids(tx, rows)

    def clear_index(self, tx: PostgresTransaction, epoch: int) -> bool:
        """Empty the index in the surrounding transaction; False if somebody else has done so since `epoch`."""
        if _read_marks(tx)[EPOCH] != epoch:
            return False
        tx.run("TRUNCATE message_words, known_words, forgotten_words, stale_index, message_times")
        for key, value in ((INDEXED_UPTO, 0), (EPOCH, epoch + 1), (WORDS_EPOCH, _read_marks(tx)[WORDS_EPOCH] + 1)):
            _write_mark(tx, key, value)
        return True

    def waiting(self, tx: PostgresTransaction) -> int:
        """How many messages wait for the index, about."""
        newest = tx.value("SELECT MAX(id) FROM messages") or 0
        stale = tx.value("SELECT count(*) FROM stale_index")
        return int(max(0, newest - _read_marks(tx)[INDEXED_UPTO]) + stale)


Row = tuple[Any, ...]


class UnusedWords(NamedTuple):
    """What became of the words of deleted messages."""

    messages: int
    """Of how many messages."""
    is_forgotten: bool
    """Whether a word is known no more."""


def _read_marks(tx: PostgresTransaction) -> dict[str, int]:
    rows = tx.rows(
        "SELECT key, value FROM state_meta WHERE key IN (:mark, :epoch, :words)",
        mark=INDEXED_UPTO,
        epoch=EPOCH,
        words=WORDS_EPOCH,
    )
    return dict.fromkeys((INDEXED_UPTO, EPOCH, WORDS_EPOCH), 0) | {key: int(value or 0) for key, value in rows}


def _write_mark(tx: PostgresTransaction, key: str, value: int) -> None:
    tx.run(tx.dialect.upsert("state_meta", ["key"], ["value"]), key=key, value=str(value))


def _stale_rows(tx: PostgresTransaction, mark: int) -> list[Row]:
    """Messages that were changed since they were indexed, held so that they do not change again before this commits."""
    ids = tx.rows(
        """SELECT message_id FROM stale_index WHERE message_id <= :mark
           UNION SELECT id FROM messages WHERE uid IS NULL AND id <= :mark ORDER BY 1 LIMIT :limit""",
        mark=mark,
        limit=BATCH,
    )
    if not ids:
        return []
    listed = array(str(row[0]) for row in ids)
    rows = tx.rows(f"{_MESSAGE} WHERE m.id = ANY(CAST(:ids AS bigint[])) ORDER BY m.id FOR SHARE OF m", ids=listed)
    tx.run("DELETE FROM stale_index WHERE message_id = ANY(CAST(:ids AS bigint[]))", ids=listed)
    return rows


def _fresh_rows(tx: PostgresTransaction, mark: int) -> tuple[int, list[Row]]:
    """The next messages, and up to which id that is all there will ever be; `mark` if that cannot be said yet."""
    upto = tx.value(
        """SELECT MAX(id) FROM (SELECT id FROM messages WHERE id > :mark ORDER BY id LIMIT :limit) AS next""",
        mark=mark,
        limit=BATCH,
    )
    if upto is None or not _is_settled(tx):
        return mark, []
    span = {"mark": mark, "upto": upto}
    # What is being changed or deleted is left for later; to wait for it might be to wait for each other.
    rows = tx.rows(f"{_MESSAGE} WHERE m.id > :mark AND m.id <= :upto ORDER BY m.id FOR SHARE OF m SKIP LOCKED", **span)
    tx.run("DELETE FROM stale_index WHERE message_id > :mark AND message_id <= :upto", **span)
    every = tx.rows("SELECT id FROM messages WHERE id > :mark AND id <= :upto", **span)
    if len(every) > len(rows):
        left = {row[0] for row in every} - {row[0] for row in rows}
        insert = tx.dialect.insert_or_ignore("stale_index", ["message_id"])
        tx.run_many(insert, [{"message_id": each} for each in left])
    return upto, rows


def _is_settled(tx: PostgresTransaction) -> bool:
    """Wait for those who are adding messages now: they may have been given ids below those that can be seen."""
    writers = set(tx.rows(_WRITERS))
    deadline = time.monotonic() + SETTLE_S
    while writers and time.monotonic() < deadline:
        time.sleep(SETTLE_PAUSE_S)
        writers &= set(tx.rows(_WRITERS))
    return not writers


def _assign_uids(tx: PostgresTransaction, rows: Sequence[Row]) -> None:
    """Give messages of other programs the uid that they have been shown with; from then on they are as any other."""
    foreign = [
        {"id": message_id, "uid": derived_uid(message_id, timestamp, role, content)}
        for message_id, timestamp, uid, role, _, _, _, content, _, _ in rows
        if uid is None
    ]
    if foreign:
        tx.run_many("UPDATE messages SET uid = :uid WHERE id = :id", foreign)


def _add_time_range(tx: PostgresTransaction, first: int, last: int, rows: Sequence[Row]) -> None:
    """Note when the messages of a batch were said."""
    moments = [row[1] for row in rows]
    tx.run(
        tx.dialect.upsert("message_times", ["first_id"], ["last_id", "oldest", "newest"]),
        first_id=first,
        last_id=last,
        oldest=min(moments),
        newest=max(moments),
    )


def _widen_time_ranges(tx: PostgresTransaction, rows: Sequence[Row]) -> None:
    """Note when changed messages were said; one that another program put before all others makes a zone."""
    for row in rows:
        changed = tx.run(
            """UPDATE message_times SET oldest = LEAST(oldest, :moment), newest = GREATEST(newest, :moment)
               WHERE first_id = (SELECT MAX(first_id) FROM message_times WHERE first_id <= :id)""",
            id=row[0],
            moment=row[1],
        )
        if not changed:
            _add_time_range(tx, row[0], row[0], [row])


def _forget_words(tx: PostgresTransaction, upto: int) -> UnusedWords:
    """Forget the words of some deleted messages that no other message has."""
    waste = tx.rows("SELECT id FROM forgotten_words ORDER BY id LIMIT :limit", limit=WASTE)
    if not waste:
        return UnusedWords(0, is_forgotten=False)
    last = waste[-1][0]
    said = _words_in(tx, "forgotten_words WHERE id <= :last", last=last)
    # Common words are among the newest messages; to look for all that have one would take long.
    rest = sorted(said - _words_in(tx, "message_words WHERE message_id > :low", low=upto - ALIVE))
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
