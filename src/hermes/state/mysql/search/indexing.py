"""Updates the full-text index, a batch at a time, after the messages are stored.

A message is in the index when its id is at or below `indexed_upto` and not in `stale_index`. A trigger adds every
message there that is added or changed, in the same transaction; indexing a message removes it. So the order in which
ids are assigned and messages are committed does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hermes.state.indexing.indexed_text import search_text
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.mysql.search.document import (
    SPAN_BITS,
    Blob,
    Text,
    entry,
    packed_places,
    packed_words,
    unpacked_places,
)
from hermes.state.operations import chunks, placeholders
from hermes.state.server.search.asking import EPOCH, INDEXED_UPTO
from hermes.state.server.search.index_rows import (
    MESSAGES,
    WORDS_EPOCH,
    add_time_range,
    assign_uids,
    read_marks,
    within_bytes,
    write_mark,
)

DUE = 256
"""This many waiting messages start a batch; each search reads fewer of them directly."""
BATCH = 512
"""The most messages that one transaction indexes."""
MOST_KNOWN = 400_000
"""How many words are remembered with their ids, so that they are not looked up again."""
WASTE = 256
"""How many deleted messages' words a batch forgets."""
SOME_WORDS = 200
"""How many words one statement looks up."""


Row = tuple[Any, ...]


class Batch(NamedTuple):
    """The result of a batch."""

    messages: int = 0
    upto: int | None = None
    """The id up to which messages are indexed now; None if another process is indexing."""
    words: dict[str, int] = {}  # noqa: RUF012 - it is never changed
    """Words that are known now, with their ids."""
    words_epoch: int = 0
    has_more: bool = False


class Indexer:
    """Updates the index of one store; what it remembers between batches only saves work."""

    due = DUE

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._words_epoch = -1

    def batch(self, tx: MySQLTransaction) -> Batch:
        """Index the next messages in the surrounding transaction, unless another process is indexing."""
        if not tx.rows('SELECT 1 FROM state_meta WHERE "key" = :key FOR UPDATE SKIP LOCKED', key=EPOCH):
            return Batch()
        marks = read_marks(tx)
        mark, words_epoch = marks[INDEXED_UPTO], marks[WORDS_EPOCH]
        known = dict(self._known) if words_epoch == self._words_epoch else {}
        waste = _take_ids(tx, "deleted_messages", WASTE)
        waiting = _locked_ids(tx, "stale_index", BATCH)
        due = within_bytes(tx, waiting)
        _remove_ids(tx, "stale_index", due)
        if _forget(tx, [*waste, *(each for each in due if each <= mark)]):
            # Other processes may remember words that are no longer known.
            words_epoch += 1
            known = {}
            write_mark(tx, WORDS_EPOCH, words_epoch)
        rows = _messages(tx, due)
        _add(tx, rows, known)
        _widen_time_ranges(tx, [row for row in rows if row[0] <= mark])
        upto = max([mark, *due])
        if upto > mark:
            add_time_range(tx, mark + 1, upto, [row for row in rows if row[0] > mark])
            write_mark(tx, INDEXED_UPTO, upto)
        has_more = len(due) < len(waiting) or len(due) == BATCH or len(waste) == WASTE
        return Batch(len(rows), upto, known, words_epoch, has_more)

    def remember_words(self, done: Batch) -> None:
        """Remember the words of a batch that is committed."""
        self._known = done.words if len(done.words) <= MOST_KNOWN else {}
        self._words_epoch = done.words_epoch

    def clear_index(self, tx: MySQLTransaction, epoch: int) -> bool:
        """Empty the index in the surrounding transaction; return False if another process did so since `epoch`."""
        tx.rows('SELECT 1 FROM state_meta WHERE "key" = :key FOR UPDATE', key=EPOCH)
        marks = read_marks(tx)
        if marks[EPOCH] != epoch:
            return False
        for table in ("word_places", "message_words", "known_words", "deleted_messages", "message_times"):
            tx.run(f"DELETE FROM {table}")
        tx.run("INSERT IGNORE INTO stale_index (message_id) SELECT id FROM messages")
        for key, value in ((INDEXED_UPTO, 0), (EPOCH, epoch + 1), (WORDS_EPOCH, marks[WORDS_EPOCH] + 1)):
            write_mark(tx, key, value)
        return True

    def waiting(self, tx: MySQLTransaction) -> int:
        """The number of messages that are not indexed yet."""
        return int(tx.value("SELECT COUNT(*) FROM stale_index"))


def _take_ids(tx: MySQLTransaction, table: str, limit: int) -> list[int]:
    """Take ids out of a to-do table; a transaction that adds one of them again waits until this one commits."""
    ids = _locked_ids(tx, table, limit)
    _remove_ids(tx, table, ids)
    return ids


def _locked_ids(tx: MySQLTransaction, table: str, limit: int) -> list[int]:
    rows = tx.rows(
        f"SELECT message_id FROM {table} ORDER BY message_id LIMIT :limit FOR UPDATE SKIP LOCKED", limit=limit
    )
    return [row[0] for row in rows]


def _remove_ids(tx: MySQLTransaction, table: str, ids: Sequence[int]) -> None:
    for some in chunks(ids):
        _, values = placeholders("id", some)
        tx.run(tx.dialect.delete_where_in(table, "message_id", values), **values)


def _messages(tx: MySQLTransaction, ids: Sequence[int]) -> list[Row]:
    found: list[Row] = []
    for some in chunks(ids):
        listed, values = placeholders("id", some)
        found += tx.rows(f"{MESSAGES} WHERE m.id IN ({listed}) ORDER BY m.id", **values)
    return found


def _add(tx: MySQLTransaction, rows: Sequence[Row], known: dict[str, int]) -> None:
    """Index messages that are not in the index, and add their words to `known`."""
    if not rows:
        return
    entries = {}
    for message_id, _, _, role, session_id, source, owner, *content in rows:
        entries[message_id] = entry(role, session_id, source, owner, search_text(role, *content))
    _assign_word_ids(tx, {word for each in entries.values() for part in each for word in part}, known)
    places: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    packed = []
    for message_id, (words, rest) in entries.items():
        ids = [known[word] for word in (*words, *rest)]
        packed.append((message_id, packed_words(ids)))
        for word_id in set(ids):
            places[word_id, message_id >> SPAN_BITS].append(message_id)
    tx.insert_many(
        "INSERT INTO message_words (message_id, words)",
        packed,
        "ON DUPLICATE KEY UPDATE words = VALUES(words)",
    )
    tx.insert_many(
        "INSERT INTO word_places (word_id, span, places)",
        [(*key, packed_places(places[key])) for key in sorted(places)],
        "ON DUPLICATE KEY UPDATE places = CONCAT(places, VALUES(places))",
    )
    assign_uids(tx, rows)


def _assign_word_ids(tx: MySQLTransaction, words: Iterable[str], known: dict[str, int]) -> None:
    """Add words to `known` with their ids; insert those that are new."""
    unknown = sorted(word for word in words if word not in known)
    _look_up(tx, unknown, known)
    fresh = [word for word in unknown if word not in known]
    tx.insert_many("INSERT INTO known_words (word)", [(word,) for word in fresh])
    _look_up(tx, fresh, known)


def _look_up(tx: MySQLTransaction, words: Sequence[str], known: dict[str, int]) -> None:
    for some in chunks(words, SOME_WORDS):
        listed, values = placeholders("word", some)
        known.update(tx.rows(f"SELECT word, id FROM known_words WHERE word IN ({listed})", **values))


def _forget(tx: MySQLTransaction, ids: Sequence[int]) -> bool:
    """Remove messages from the index; return whether there is a word that no message has any more."""
    removed: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for some in chunks(ids):
        listed, values = placeholders("id", some)
        for message_id, packed in tx.rows(
            f"SELECT message_id, words FROM message_words WHERE message_id IN ({listed})", **values
        ):
            for word_id in Text(packed).present:
                removed[message_id >> SPAN_BITS, word_id].add(message_id % (1 << SPAN_BITS))
        tx.run(f"DELETE FROM message_words WHERE message_id IN ({listed})", **values)
    emptied = _take_places(tx, removed)
    return _forget_words(tx, emptied)


def _take_places(tx: MySQLTransaction, removed: dict[tuple[int, int], set[int]]) -> list[int]:
    """Remove positions from the rows of words; return the words that have none left in a span."""
    emptied: set[int] = set()
    by_span: defaultdict[int, list[int]] = defaultdict(list)
    for span, word_id in removed:
        by_span[span].append(word_id)
    for span, word_ids in by_span.items():
        kept: list[tuple[int, int, Blob]] = []
        for some in chunks(sorted(word_ids)):
            listed, values = placeholders("word", some)
            rows = tx.rows(
                f"SELECT word_id, places FROM word_places WHERE word_id IN ({listed}) AND span = :span",
                span=span,
                **values,
            )
            for word_id, packed in rows:
                left = unpacked_places(packed) - removed[span, word_id]
                if left:
                    kept.append((word_id, span, packed_places(sorted(left))))
            empty = [row[0] for row in rows if row[0] not in {each[0] for each in kept}]
            listed, values = placeholders("word", empty)
            tx.run(f"DELETE FROM word_places WHERE word_id IN ({listed}) AND span = :span", span=span, **values)
            emptied.update(empty)
        tx.insert_many(
            "INSERT INTO word_places (word_id, span, places)",
            kept,
            "ON DUPLICATE KEY UPDATE places = VALUES(places)",
        )
    return sorted(emptied)


def _forget_words(tx: MySQLTransaction, ids: Sequence[int]) -> bool:
    """Remove those of some words that no message has; return whether there were any."""
    forgotten = 0
    for some in chunks(ids):
        listed, values = placeholders("word", some)
        forgotten += tx.run(
            f"""DELETE FROM known_words WHERE id IN ({listed})
                AND NOT EXISTS (SELECT 1 FROM word_places p WHERE p.word_id = known_words.id)""",
            **values,
        )
    return forgotten > 0


def _widen_time_ranges(tx: MySQLTransaction, rows: Sequence[Row]) -> None:
    """Widen the time ranges for changed messages; a message outside of all ranges gets its own."""
    for row in rows:
        first = tx.value("SELECT MAX(first_id) FROM message_times WHERE first_id <= :id", id=row[0])
        changed = (
            0
            if first is None
            else tx.run(
                """UPDATE message_times SET oldest = LEAST(oldest, :moment), newest = GREATEST(newest, :moment),
                                        last_id = GREATEST(last_id, :id)
               WHERE first_id = :first""",
                id=row[0],
                moment=row[1],
                first=first,
            )
        )
        if not changed:
            add_time_range(tx, row[0], row[0], [row])
