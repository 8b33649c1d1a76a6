"""The rows that every server's index has beside its words: marks, time ranges, and the messages to index."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.state.engine import Reading, Transaction, Values
from hermes.state.operations import chunks, placeholders
from hermes.state.rows import derived_uid
from hermes.state.server.search.asking import EPOCH, INDEXED_UPTO

WORDS_EPOCH = "words_epoch"

MESSAGES = """SELECT m.id, m.timestamp, m.uid, m.role, m.session_id, s.source, s.owner, m.content, m.tool_name,
                     m.tool_calls
              FROM messages m LEFT JOIN sessions s ON s.id = m.session_id"""
"""The columns of a message that its index entry is made of."""
TEXT_BYTES = "COALESCE(OCTET_LENGTH(m.content), 0) + COALESCE(OCTET_LENGTH(m.tool_calls), 0)"
"""About how much text of a message the index has to read."""
BATCH_BYTES = 2_000_000
"""The most text that one transaction indexes, unless a single message has more: others wait for its locks meanwhile."""


def within_bytes(tx: Reading, ids: Sequence[int]) -> Sequence[int]:
    """Return the first of these messages that have no more text together than a batch may have, at least one."""
    sizes: dict[int, int] = {}
    for some in chunks(ids):
        listed, values = placeholders("id", some)
        sizes |= dict(tx.rows(f"SELECT m.id, {TEXT_BYTES} FROM messages m WHERE m.id IN ({listed})", **values))
    total = 0
    for number, message_id in enumerate(ids):
        total += sizes.get(message_id, 0)
        if total > BATCH_BYTES and number:
            return ids[:number]
    return ids


def read_marks(tx: Reading) -> dict[str, int]:
    """Return the id up to which messages are indexed, and the two epochs; 0 for those that are not stored."""
    keys = (INDEXED_UPTO, EPOCH, WORDS_EPOCH)
    listed, values = placeholders("key", keys)
    rows = tx.rows(f'SELECT "key", value FROM state_meta WHERE "key" IN ({listed})', **values)
    return dict.fromkeys(keys, 0) | {key: int(value or 0) for key, value in rows}


def write_mark(tx: Transaction, key: str, value: int) -> None:
    """Store one of the marks."""
    tx.run(tx.dialect.upsert("state_meta", ["key"], ["value"]), key=key, value=str(value))


def assign_uids(tx: Transaction, rows: Sequence[Values]) -> None:
    """Store the uid with which messages of other programs were shown; from then on they are like all others."""
    foreign = [
        {"id": message_id, "uid": derived_uid(message_id, timestamp, role, content)}
        for message_id, timestamp, uid, role, _, _, _, content, _, _ in rows
        if uid is None
    ]
    if foreign:
        tx.run_many("UPDATE messages SET uid = :uid WHERE id = :id AND uid IS NULL", foreign)


def add_time_range(tx: Transaction, first: int, last: int, rows: Sequence[Values]) -> None:
    """Store the time range of the messages of a batch."""
    moments = [row[1] for row in rows]
    if moments:
        tx.run(
            tx.dialect.upsert("message_times", ["first_id"], ["last_id", "oldest", "newest"]),
            first_id=first,
            last_id=last,
            oldest=min(moments),
            newest=max(moments),
        )
