"""Count the sessions and messages of a store, and the messages that are not indexed yet."""

from __future__ import annotations

from typing import NamedTuple

from hermes.state.engine import Reading
from hermes.state.operations import Operations, read


class StoreCounts(NamedTuple):
    """The counts of a store."""

    sessions: int
    messages: int
    """Including undone ones."""
    waiting: int
    """How many messages are not indexed yet; a search finds them, but more slowly."""


def count(store: Operations) -> StoreCounts:
    """Return the counts of a store."""

    def read_counts(tx: Reading) -> StoreCounts:
        upto = store._engine.index.coverage(tx, 0).upto
        waiting = tx.value("SELECT count(*) FROM messages WHERE id > :upto", upto=upto)
        sessions, messages = (int(tx.value(f"SELECT count(*) FROM {table}")) for table in ("sessions", "messages"))
        return StoreCounts(sessions, messages, int(waiting))

    return read(store, read_counts)
