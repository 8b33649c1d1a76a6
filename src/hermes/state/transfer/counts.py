"""How much there is in a store, and how much of it the search index does not know yet."""

from __future__ import annotations

from typing import NamedTuple

from hermes.state.engine import Reading
from hermes.state.operations import Operations, read


class StoreCounts(NamedTuple):
    """What was counted."""

    sessions: int
    messages: int
    """Hidden ones too."""
    waiting: int
    """How many messages wait for the index; they are found all the same, though not as fast."""


def count(store: Operations) -> StoreCounts:
    """Count what is in a store."""

    def look(tx: Reading) -> StoreCounts:
        upto = store._engine.index.coverage(tx, 0).upto
        waiting = tx.value("SELECT count(*) FROM messages WHERE id > :upto", upto=upto)
        sessions, messages = (int(tx.value(f"SELECT count(*) FROM {table}")) for table in ("sessions", "messages"))
        return StoreCounts(sessions, messages, int(waiting))

    return read(store, look)
