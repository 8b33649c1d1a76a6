"""Measure how many bytes a store takes, by purpose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from hermes.state.engine import Values

if TYPE_CHECKING:
    from hermes.state.provider import SessionDBProvider

SEARCH_TABLES = (
    *("message_words", "known_words", "forgotten_words", "word_places"),
    *("stale_index", "deleted_messages", "message_times"),
)
"""The tables that a server uses only for search."""


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes by purpose."""

    text: int
    """Messages."""
    search: int
    """The search indexes."""
    indexes: int
    """All other indexes."""
    other: int
    """Sessions and the small tables."""
    free: int | None
    """Empty pages that will be reused; None if the server does not report them."""

    @property
    def total(self) -> int:
        """Return the sum."""
        return sum(size for size in asdict(self).values() if size is not None)


def measure_disk_usage(store: SessionDBProvider, limit_s: float) -> DiskUsage | None:
    """Return how many bytes a store takes; None if that is unknown or takes longer than `limit_s`."""
    return store._engine.maintenance.disk_usage(limit_s)


def usage_of_tables(sizes: Iterable[Values]) -> DiskUsage:
    """Add up the sizes of a server's tables: name, size, and size of the indexes of each."""
    text = search = indexes = other = 0
    for table, size, index_size in sizes:
        if table in SEARCH_TABLES:
            search += size + index_size
        else:
            indexes += index_size
            text += size if table == "messages" else 0
            other += 0 if table == "messages" else size
    return DiskUsage(text, search, indexes, other, None)
