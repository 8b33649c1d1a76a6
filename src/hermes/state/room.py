"""Room: how much of it a store takes, and for what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from hermes.state.engine import Capability, Reading, Values
from hermes.state.operations import read
from hermes.state.provider import SessionDBProvider

SEARCH_TABLES = (
    *("message_words", "known_words", "forgotten_words", "word_places"),
    *("stale_index", "deleted_messages", "message_times"),
)
"""What a server keeps only to find messages."""

SIZES_OF_TABLES = {
    "postgresql": """
        SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
        WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())""",
    "mysql": """
        SELECT table_name, COALESCE(data_length, 0), COALESCE(index_length, 0) FROM information_schema.tables
        WHERE table_schema = DATABASE()""",
}
"""Asks each server what it knows of itself: the name of each table, its size, and that of its indexes."""


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes by what they are for."""

    text: int
    """Messages, with all that was stored of them."""
    search: int
    """What finds them by their words."""
    indexes: int
    """What finds everything else."""
    other: int
    """Sessions and the small tables."""
    free: int | None
    """What is empty and will be used again; None where a server does not tell."""

    @property
    def total(self) -> int:
        """All of it."""
        return sum(size for size in asdict(self).values() if size is not None)


def room_of(store: SessionDBProvider, limit_s: float) -> Room | None:
    """Measure a store; None if nobody can tell, or not in this time: every page of a file has to be looked at."""
    if Capability.FILE in store.capabilities:
        from hermes.state.sqlite.checks.sizes import parts_of
        from hermes.state.sqlite.checks.subject import Watch
        from hermes.state.sqlite.connection import View

        def measure(tx: Reading) -> dict[str, int] | None:
            assert isinstance(tx, View)
            return parts_of(tx, Watch(), limit_s)

        parts = read(store, measure)
        if parts is None:
            return None
        search = parts["words"] + parts["trigrams"]
        return Room(parts["messages"], search, parts["indexes"], parts["other"], parts["free"])
    asking = SIZES_OF_TABLES.get(store.health()["provider"])
    return None if asking is None else _of_tables(read(store, lambda tx: tx.rows(asking)))


def _of_tables(sizes: Iterable[Values]) -> Room:
    text = search = indexes = other = 0
    for table, size, index_size in sizes:
        if table in SEARCH_TABLES:
            search += size + index_size
        else:
            indexes += index_size
            text += size if table == "messages" else 0
            other += 0 if table == "messages" else size
    return Room(text, search, indexes, other, None)
