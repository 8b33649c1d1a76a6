"""The check of a database file of unknown origin, before any of its rows is read."""

from __future__ import annotations

import time
from pathlib import Path

import apsw

from hermes.errors import StoreCorrupt
from hermes.state.sqlite import errors
from hermes.state.sqlite.files.names import LOG, beside, bytes_of, real_file
from hermes.state.sqlite.schema.read_only import raw_reader_factory

TABLES = (
    *("schema_version", "state_meta", "hermes_ledger", "sessions", "messages", "usage_events", "session_tools"),
    *("rewinds", "pending_links", "message_times"),
)
"""The tables from which an import, or the opening before it, reads rows."""

LEAST_S = 10.0
BYTES_PER_SECOND = 2_000_000
"""Even a slow disk reads faster than this."""
STEPS_BETWEEN_LOOKS = 10_000


def require_sound(path: Path) -> None:
    """Raise `StoreCorrupt` unless each page of the tables that an import reads is used once.

    In a file of a few kilobytes, pages that point to each other can make a table of endless rows, or one text into
    gigabytes. SQLite reads such a table without complaint, but its check visits no page twice.
    """
    file = real_file(path)
    deadline = time.monotonic() + LEAST_S + (bytes_of(file) + bytes_of(beside(file, LOG))) / BYTES_PER_SECOND
    try:
        connection = raw_reader_factory(path)()
        try:
            # The handler also lets Ctrl-C end a long check.
            connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
            connection.execute("PRAGMA ignore_check_constraints = on").fetchall()
            flaw = next((flaw for table in TABLES if (flaw := _flaw_of(connection, table)) is not None), None)
        finally:
            connection.close()
    except apsw.InterruptError:
        raise _damage_error(path, "its tables cannot be checked in a reasonable time") from None
    except apsw.Error as exc:
        raise errors.translate(exc, path) from exc
    if flaw is not None:
        raise _damage_error(path, flaw)


def _flaw_of(connection: apsw.Connection, table: str) -> str | None:
    """Return what is wrong with a table and its indexes; None if nothing is, or there is no such table."""
    is_table = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ? LIMIT 1", (table,))
    if not is_table.fetchall():
        return None
    ((result,), *_) = connection.execute(f"PRAGMA quick_check({table})").fetchall()
    lines = [line for line in str(result).splitlines() if not line.startswith("***")]
    return None if lines == ["ok"] else f"table {table}: {lines[0] if lines else result}"


def _damage_error(path: Path, why: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is damaged, or was made to do harm: {why}",
        hint="if you trust its origin, copy it into an empty Hermes home and run `hermes sessions repair` there",
    )
