"""Maintenance of a store on MySQL or MariaDB: updating its index, compacting tables, erasing deleted text."""

from __future__ import annotations

from collections.abc import Callable

from hermes.state.engine import Reading, Report, Values
from hermes.state.maintenance.disk_usage import DiskUsage, usage_of_tables

INDEXES = 2
"""The index of words, and the index of their order."""
INDEX_TABLES = ("word_places", "message_words", "known_words")
TABLES = (
    *("sessions", "messages", "usage_events", "session_tools", "rewinds", "pending_links", "compression_locks"),
    *("lanes", "lane_queues", "inbox", "turns", "outbox", "connector_leases", "approvals", "usage_days"),
    *(*INDEX_TABLES, "deleted_messages", "stale_index", "message_times", "state_meta"),
)
SIZES_OF_TABLES = """
    SELECT table_name, COALESCE(data_length, 0), COALESCE(index_length, 0) FROM information_schema.tables
    WHERE table_schema = DATABASE()"""


Read = Callable[[Callable[[Reading], list[Values]]], list[Values]]


class MySQLMaintenance:
    """The maintenance operations of one store."""

    def __init__(self, read: Read, catch_up: Callable[[], None], run_alone: Callable[[str], None]) -> None:
        self._read = read
        self._catch_up = catch_up
        self._run_alone = run_alone
        """Executes a command outside of any transaction."""

    def merge_index(self, report: Report | None = None, /) -> int:
        """Index waiting messages and rewrite the indexes, while others write; return the number of indexes."""
        self._catch_up()
        self._rewrite(INDEX_TABLES, report)
        return INDEXES

    def compact(self, report: Report | None = None, /) -> None:
        """Rewrite every table, so that unused space goes back to the disk."""
        self._rewrite(TABLES, report)

    def erase(self, report: Report | None = None, /) -> None:
        """Forget the words of deleted messages, and rewrite every table."""
        self._catch_up()
        self._rewrite(TABLES, report)

    def disk_usage(self, _limit_s: float, /) -> DiskUsage | None:
        """Measure how many bytes the tables take; the server knows the sizes, so this needs no time limit."""
        return usage_of_tables(self._read(lambda tx: tx.rows(SIZES_OF_TABLES)))

    def _rewrite(self, tables: tuple[str, ...], report: Report | None) -> None:
        for number, table in enumerate(tables, start=1):
            self._run_alone(f"OPTIMIZE TABLE {table}")
            if report is not None:
                report("compacting", number, len(tables))
