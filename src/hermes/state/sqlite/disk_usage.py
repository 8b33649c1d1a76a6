"""How many bytes of an SQLite file each of its parts takes."""

from __future__ import annotations

from hermes.state.maintenance.disk_usage import DiskUsage
from hermes.state.sqlite.connection import View

PARTS = ("messages", "words", "trigrams", "indexes", "other", "free")
"""The parts of a file: messages, the two full-text indexes, the other indexes, the other tables, and free pages."""


def measure_parts(view: View) -> dict[str, int]:
    """Return how many bytes of the file each of `PARTS` takes; this reads every page."""
    page_bytes, _, free = count_pages(view)
    parts = dict.fromkeys(PARTS, 0) | {"free": page_bytes * free}
    for name, size in view.rows("SELECT name, SUM(pgsize) FROM dbstat GROUP BY name"):
        parts[_part_of(name)] += size
    return parts


def add_up(parts: dict[str, int]) -> DiskUsage:
    """Return the sizes grouped by purpose."""
    search = parts["words"] + parts["trigrams"]
    return DiskUsage(parts["messages"], search, parts["indexes"], parts["other"], parts["free"])


def count_pages(view: View) -> tuple[int, int, int]:
    """Return the page size, the number of pages, and the number of free pages."""
    size, count, free = (int(view.value(f"PRAGMA {name}")) for name in ("page_size", "page_count", "freelist_count"))
    return size, count, free


def _part_of(name: str) -> str:
    if name.startswith("messages_fts_trigram"):
        return "trigrams"
    if name.startswith("messages_fts"):
        return "words"
    if name.startswith(("idx_", "sqlite_autoindex_")):
        return "indexes"
    return "messages" if name == "messages" else "other"
