"""The upkeep of a store on PostgreSQL: its index, its room, and what was deleted from it."""

from __future__ import annotations

from collections.abc import Callable

from hermes.state.engine import Reading, Report, Values
from hermes.state.maintenance.disk_usage import DiskUsage, usage_of_tables

INDEXES = 2
"""The index of words, and that of the parts of words."""
TABLES = (
    *("sessions", "messages", "usage_events", "session_tools", "rewinds", "pending_links", "compression_locks"),
    *("message_words", "known_words", "forgotten_words", "stale_index", "message_times", "state_meta"),
)
SIZES_OF_TABLES = """
    SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"""


Read = Callable[[Callable[[Reading], list[Values]]], list[Values]]


class PostgresMaintenance:
    """Keeps one store in order."""

    def __init__(self, read: Read, catch_up: Callable[[], None], run_alone: Callable[[str, str], None]) -> None:
        self._read = read
        self._catch_up = catch_up
        self._run_alone = run_alone
        """Executes a command on a table, outside of any transaction."""

    def merge_index(self, report: Report | None = None, /) -> int:
        """Index what waits, and bring the index into its shortest form, while others write."""
        self._catch_up()
        self._vacuum("", ("message_words", "known_words"), report)
        return INDEXES

    def compact(self, report: Report | None = None, /) -> None:
        """Have the room of deleted rows used again; the server gives it back to the disk where it can."""
        self._vacuum("(ANALYZE)", TABLES, report)

    def erase(self, report: Report | None = None, /) -> None:
        """Write every table anew, so that nothing of what was deleted stays in them; others wait meanwhile."""
        self._catch_up()
        self._vacuum("(FULL, ANALYZE)", TABLES, report)

    def disk_usage(self, _limit_s: float, /) -> DiskUsage | None:
        """Measure how many bytes the tables take; the server knows, so there is no need to wait."""
        return usage_of_tables(self._read(lambda tx: tx.rows(SIZES_OF_TABLES)))

    def _vacuum(self, how: str, tables: tuple[str, ...], report: Report | None) -> None:
        for number, table in enumerate(tables, start=1):
            self._run_alone(f"VACUUM {how}", table)
            if report is not None:
                report("compacting", number, len(tables))
