"""Maintenance of a store on PostgreSQL: updating its index, compacting tables, erasing deleted text."""

from __future__ import annotations

from collections.abc import Callable

from hermes.state.engine import Reading, Report, Values
from hermes.state.maintenance.disk_usage import DiskUsage, usage_of_tables

INDEXES = 2
"""The index of words, and the index of parts of words."""
TABLES = (
    *("sessions", "messages", "usage_events", "session_tools", "rewinds", "pending_links", "compression_locks"),
    *("lanes", "lane_queues", "inbox", "turns", "outbox", "connector_leases", "approvals", "usage_days"),
    *("message_words", "known_words", "forgotten_words", "stale_index", "message_times", "state_meta"),
)
SIZES_OF_TABLES = """
    SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"""


Read = Callable[[Callable[[Reading], list[Values]]], list[Values]]


class PostgresMaintenance:
    """The maintenance operations of one store."""

    def __init__(self, read: Read, catch_up: Callable[[], None], run_alone: Callable[[str, str], None]) -> None:
        self._read = read
        self._catch_up = catch_up
        self._run_alone = run_alone
        """Executes a command on a table, outside of any transaction."""

    def merge_index(self, report: Report | None = None, /) -> int:
        """Index waiting messages and merge the index, while others write; return the number of indexes."""
        self._catch_up()
        self._vacuum("", ("message_words", "known_words"), report)
        return INDEXES

    def compact(self, report: Report | None = None, /) -> None:
        """Make the space of deleted rows usable again; the server gives it back to the disk where it can."""
        self._vacuum("(ANALYZE)", TABLES, report)

    def erase(self, report: Report | None = None, /) -> None:
        """Rewrite every table, so that no deleted text stays in it; other writers wait meanwhile."""
        self._catch_up()
        self._vacuum("(FULL, ANALYZE)", TABLES, report)

    def disk_usage(self, _limit_s: float, /) -> DiskUsage | None:
        """Measure how many bytes the tables take; the server knows the sizes, so this needs no time limit."""
        return usage_of_tables(self._read(lambda tx: tx.rows(SIZES_OF_TABLES)))

    def _vacuum(self, how: str, tables: tuple[str, ...], report: Report | None) -> None:
        for number, table in enumerate(tables, start=1):
            self._run_alone(f"VACUUM {how}", table)
            if report is not None:
                report("compacting", number, len(tables))
