"""Filling the full-text index, a batch at a time, behind the messages.

A message is in the index when its id is at or below `indexed_upto` and not in `stale_index`. An id is given out before
its message is committed, so the mark may only pass ids whose transactions have ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from hermes.query.analyze import GAP
from hermes.state.operations import chunks
from hermes.state.postgres.session import PostgresSession
from hermes.state.postgres.vector import array, vector
from hermes.state.rows import derived_uid
from hermes.state.searchtext import search_text
from hermes.state.server.coverage import EPOCH, INDEXED_UPTO

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


class Done(NamedTuple):
    """What a batch did."""

    messages: int = 0
    upto: int | None = None
    """The id up to which messages are in the index now; None: somebody else is at it."""
    words: frozenset[str] = frozenset()
    """Words that are known now."""
    words_epoch: int = 0
    has_more: bool = False


class Filler:
    """Fills the index of one store; what it remembers between batches only saves work."""

    due = DUE

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._words_epoch = -1

    def batch(self, session: PostgresSession) -> Done:
        """Index the next messages in the surrounding transaction, unless somebody else is at it."""
        if not session.value(_LOCK):
            return Done()
        noted = _noted(session)
        mark, words_epoch = noted[INDEXED_UPTO], noted[WORDS_EPOCH]
        words: set[str] = set()
        stale = _stale_rows(session, mark)
        if stale:
            self._add(session, stale, words, words_epoch)
            _widen_zones(session, stale)
        upto, fresh = _fresh_rows(session, mark)
        if fresh:
            self._add(session, fresh, words, words_epoch)
            _note_zone(session, mark + 1, upto, fresh)
        if upto > mark:
            _note(session, INDEXED_UPTO, upto)
        if stale or fresh:
            session.value(_TIDY)
        waste = _forget_words(session, upto)
        if waste.is_forgotten:
            # What others remember as known may not be any more.
            words_epoch += 1
            _note(session, WORDS_EPOCH, words_epoch)
        has_more = max(len(stale), len(fresh)) == BATCH or waste.messages == WASTE
        return Done(len(stale) + len(fresh), upto, frozenset(words), words_epoch, has_more)

    def remember(self, done: Done) -> None:
        """Remember the words of a batch that is committed."""
        if done.words_epoch != self._words_epoch or len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._words_epoch = done.words_epoch
        self._known |= done.words

    def _add(self, session: PostgresSession, rows: Sequence[Row], words: set[str], words_epoch: int) -> None:
        known = self._known if words_epoch == self._words_epoch else frozenset()
        vectors = []
        for message_id, _, _, role, session_id, source, owner, *said in rows:
            entry = vector(message_id, role, session_id, source, owner, search_text(role, *said))
            vectors.append(entry.text)
            words.update(entry.words)
        fresh = sorted(words - known)
        if fresh:
            session.run(
                """INSERT INTO known_words (word) SELECT unnest(CAST(:words AS text[])) ON CONFLICT DO NOTHING""",
                words=array(fresh),
            )
        session.run(
            """INSERT INTO message_words (message_id, words)
               SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:vectors AS tsvector[]))
               ON CONFLICT (message_id) DO UPDATE SET words = excluded.words""",
            ids=array(str(row[0]) for row in rows),
            vectors=array(vectors),
        )
        _adopt(session, rows)

    def start_over(self, session: PostgresSession, epoch: int) -> bool:
        """Empty the index in the surrounding transaction; False if somebody else has done so since `epoch`."""
        if _noted(session)[EPOCH] != epoch:
            return False
        session.run("TRUNCATE message_words, known_words, forgotten_words, stale_index, message_times")
        for key, value in ((INDEXED_UPTO, 0), (EPOCH, epoch + 1), (WORDS_EPOCH, _noted(session)[WORDS_EPOCH] + 1)):
            _note(session, key, value)
        return True

    def waiting(self, session: PostgresSession) -> int:
        """How many messages wait for the index, about."""
        newest = session.value("SELECT MAX(id) FROM messages") or 0
        stale = session.value("SELECT count(*) FROM stale_index")
        return int(max(0, newest - _noted(session)[INDEXED_UPTO]) + stale)


Row = tuple[Any, ...]


class Waste(NamedTuple):
    """What became of the words of deleted messages."""

    messages: int
    """Of how many messages."""
    is_forgotten: bool
    """Whether a word is known no more."""


def _noted(session: PostgresSession) -> dict[str, int]:
    rows = session.rows(
        "SELECT key, value FROM state_meta WHERE key IN (:mark, :epoch, :words)",
        mark=INDEXED_UPTO,
        epoch=EPOCH,
        words=WORDS_EPOCH,
    )
    return dict.fromkeys((INDEXED_UPTO, EPOCH, WORDS_EPOCH), 0) | {key: int(value or 0) for key, value in rows}


def _note(session: PostgresSession, key: str, value: int) -> None:
    session.run(session.dialect.upsert("state_meta", ["key"], ["value"]), key=key, value=str(value))


def _stale_rows(session: PostgresSession, mark: int) -> list[Row]:
    """Messages that were changed since they were indexed, held so that they do not change again before this commits."""
    ids = session.rows(
        """SELECT message_id FROM stale_index WHERE message_id <= :mark
           UNION SELECT id FROM messages WHERE uid IS NULL AND id <= :mark ORDER BY 1 LIMIT :limit""",
        mark=mark,
        limit=BATCH,
    )
    if not ids:
        return []
    listed = array(str(row[0]) for row in ids)
    rows = session.rows(f"{_MESSAGE} WHERE m.id = ANY(CAST(:ids AS bigint[])) ORDER BY m.id FOR SHARE OF m", ids=listed)
    session.run("DELETE FROM stale_index WHERE message_id = ANY(CAST(:ids AS bigint[]))", ids=listed)
    return rows


def _fresh_rows(session: PostgresSession, mark: int) -> tuple[int, list[Row]]:
    """The next messages, and up to which id that is all there will ever be; `mark` if that cannot be said yet."""
    upto = session.value(
        """SELECT MAX(id) FROM (SELECT id FROM messages WHERE id > :mark ORDER BY id LIMIT :limit) AS next""",
        mark=mark,
        limit=BATCH,
    )
    if upto is None or not _is_settled(session):
        return mark, []
    span = {"mark": mark, "upto": upto}
    # What is being changed or deleted is left for later; to wait for it might be to wait for each other.
    rows = session.rows(
        f"{_MESSAGE} WHERE m.id > :mark AND m.id <= :upto ORDER BY m.id FOR SHARE OF m SKIP LOCKED", **span
    )
    session.run("DELETE FROM stale_index WHERE message_id > :mark AND message_id <= :upto", **span)
    every = session.rows("SELECT id FROM messages WHERE id > :mark AND id <= :upto", **span)
    if len(every) > len(rows):
        left = {row[0] for row in every} - {row[0] for row in rows}
        insert = session.dialect.insert_or_ignore("stale_index", ["message_id"])
        session.run_many(insert, [{"message_id": each} for each in left])
    return upto, rows


def _is_settled(session: PostgresSession) -> bool:
    """Wait for those who are adding messages now: they may have been given ids below those that can be seen."""
    writers = set(session.rows(_WRITERS))
    deadline = time.monotonic() + SETTLE_S
    while writers and time.monotonic() < deadline:
        time.sleep(SETTLE_PAUSE_S)
        writers &= set(session.rows(_WRITERS))
    return not writers


def _adopt(session: PostgresSession, rows: Sequence[Row]) -> None:
    """Give messages of other programs the uid that they have been shown with; from then on they are as any other."""
    foreign = [
        {"id": message_id, "uid": derived_uid(message_id, timestamp, role, content)}
        for message_id, timestamp, uid, role, _, _, _, content, _, _ in rows
        if uid is None
    ]
    if foreign:
        session.run_many("UPDATE messages SET uid = :uid WHERE id = :id", foreign)


def _note_zone(session: PostgresSession, first: int, last: int, rows: Sequence[Row]) -> None:
    """Note when the messages of a batch were said."""
    moments = [row[1] for row in rows]
    session.run(
        session.dialect.upsert("message_times", ["first_id"], ["last_id", "oldest", "newest"]),
        first_id=first,
        last_id=last,
        oldest=min(moments),
        newest=max(moments),
    )


def _widen_zones(session: PostgresSession, rows: Sequence[Row]) -> None:
    """Note when changed messages were said; one that another program put before all others makes a zone."""
    for row in rows:
        changed = session.run(
            """UPDATE message_times SET oldest = LEAST(oldest, :moment), newest = GREATEST(newest, :moment)
               WHERE first_id = (SELECT MAX(first_id) FROM message_times WHERE first_id <= :id)""",
            id=row[0],
            moment=row[1],
        )
        if not changed:
            _note_zone(session, row[0], row[0], [row])


def _forget_words(session: PostgresSession, upto: int) -> Waste:
    """Forget the words of some deleted messages that no other message has."""
    waste = session.rows("SELECT id FROM forgotten_words ORDER BY id LIMIT :limit", limit=WASTE)
    if not waste:
        return Waste(0, is_forgotten=False)
    last = waste[-1][0]
    said = _words_in(session, "forgotten_words WHERE id <= :last", last=last)
    # Common words are among the newest messages; to look for all that have one would take long.
    rest = sorted(said - _words_in(session, "message_words WHERE message_id > :low", low=upto - ALIVE))
    forgotten = 0
    for some in chunks(rest, SOME_WORDS):
        forgotten += session.run(
            """DELETE FROM known_words k WHERE k.word = ANY(CAST(:words AS text[])) AND NOT EXISTS (
                   SELECT 1 FROM message_words m WHERE m.words @@ CAST('''' || k.word || '''' AS tsquery))""",
            words=array(some),
        )
    session.run("DELETE FROM forgotten_words WHERE id <= :last", last=last)
    return Waste(len(waste), is_forgotten=forgotten > 0)


def _words_in(session: PostgresSession, rows: str, **values: int) -> set[str]:
    """The words in some index rows, without marks."""
    found = session.rows(
        f"SELECT DISTINCT lexeme FROM (SELECT words FROM {rows}) AS chosen, unnest(chosen.words)", **values
    )
    return {row[0] for row in found if not row[0].startswith(GAP)}
