"""The upkeep of a store on MySQL or MariaDB: its index, its room, and what was deleted from it."""

from __future__ import annotations

from collections.abc import Callable

from hermes.state.engine import Reading, Report, Values
from hermes.state.maintenance.disk_usage import DiskUsage, usage_of_tables

INDEXES = 2
"""The one of words, and the one of their order."""
INDEX_TABLES = ("word_places", "message_words", "known_words")
TABLES = (
    *("sessions", "messages", "usage_events", "session_tools", "rewinds", "pending_links", "compression_locks"),
    *(*INDEX_TABLES, "deleted_messages", "stale_index", "message_times", "state_meta"),
)
SIZES_OF_TABLES = """
    SELECT table_name, COALESCE(data_length, 0), COALESCE(index_length, 0) FROM information_schema.tables
    WHERE table_schema = DATABASE()"""


Read = Callable[[Callable[[Reading], list[Values]]], list[Values]]


class MySQLMaintenance:
    """Keeps one store in order."""

    def __init__(self, read: Read, catch_up: Callable[[], None], run_alone: Callable[[str], None]) -> None:
        self._read = read
        self._catch_up = catch_up
        self._run_alone = run_alone
        """Executes a command outside of any transaction."""

    def merge_index(self, report: Report | None = None, /) -> int:
        """Index what waits, and write the indexes anew, while others write."""
        self._catch_up()
        self._write_anew(INDEX_TABLES, report)
        return INDEXES

    def compact(self, report: Report | None = None, /) -> None:
        """Write every table anew, so that unused room goes back to the disk."""
        self._write_anew(TABLES, report)

    def erase(self, report: Report | None = None, /) -> None:
        """Forget the words of deleted messages, and write every table anew."""
        self._catch_up()
        self._write_anew(TABLES, report)

    def disk_usage(self, _limit_s: float, /) -> DiskUsage | None:
        """Measure how many bytes the tables take; the server knows, so there is no need to wait."""
        return usage_of_tables(self._read(lambda tx: tx.rows(SIZES_OF_TABLES)))

    def _write_anew(self, tables: tuple[str, ...], report: Report | None) -> None:
        for number, table in enumerate(tables, start=1):
            self._run_alone(f"OPTIMIZE TABLE {table}")
            if report is not None:
                report("compacting", number, len(tables))
