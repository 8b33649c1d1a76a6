"""Connections to one SQLite file, and the view of it that operations get."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import apsw

from hermes.state.engine import Dialect, Guard, OutOfTime, Table, Values
from hermes.state.sql.binding import bind
from hermes.state.sql.dialect import CommonDialect
from hermes.state.sqlite.journal_mode import choose_journal
from hermes.state.sqlite.message_rows import add_plain, insert_messages

if TYPE_CHECKING:
    from hermes.state.owner import Asker

BUSY_TIMEOUT_MS = 1000
STEPS_BETWEEN_CHECKS = 1_000
"""How many steps SQLite takes before it checks the clock."""

_READING_ACTIONS = frozenset(
    (
        *(apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE),
        *(apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT),
    )
)
_DESCRIBING_PRAGMAS = frozenset(("table_info", "table_xinfo", "index_list", "index_xinfo", "foreign_key_list"))
_READ_PRAGMAS = frozenset(
    ("schema_version", "data_version", "page_count", "page_size", "freelist_count", "journal_mode", "user_version")
)


class SqliteDialect(CommonDialect):
    """SQLite's SQL phrases."""

    for_update = skip_locked = notify_lanes = ""
    now = "unixepoch('subsec')"
    given_uid_condition = "AND uid NOT GLOB '~*'"
    has_indexed_correlation = counts_in_index = True
    has_telegram_topics = "EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'telegram_dm_topic_bindings')"
    raise_next_id = ""

    def starts_with(self, column: str, parameter: str) -> str:
        """A case-sensitive prefix condition that walks the column's index."""
        return f"({column} >= :{parameter} AND {column} < :{parameter} || char(0x10ffff))"


DIALECT: Dialect = SqliteDialect()


class View:
    """A connection as operations see it: values bound by name, every cursor read to its end."""

    dialect = DIALECT
    is_repeat = False

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.newest_message = 0
        self._execute = connection.execute

    def rows(self, sql: str, /, **values: Any) -> list[Values]:
        """All rows of a query."""
        try:
            return self._execute(sql, bind(values)).fetchall()
        except UnicodeDecodeError:
            return self._read_broken(sql, values)[1]

    def row(self, sql: str, /, **values: Any) -> Values | None:
        """The first row of a query."""
        rows = self.rows(sql, **values)
        return rows[0] if rows else None

    def value(self, sql: str, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        rows = self.rows(sql, **values)
        return rows[0][0] if rows else None

    def table(self, sql: str, /, **values: Any) -> Table:
        """The column names of a query and all its rows."""
        try:
            cursor = self._execute(sql, bind(values))
            columns = [column[0] for column in cursor.getdescription()]
            return columns, cursor.fetchall()
        except apsw.ExecutionCompleteError:
            return (), []
        except UnicodeDecodeError:
            return self._read_broken(sql, values)

    def tables(self, queries: Sequence[tuple[str, Mapping[str, Any]]], /) -> list[Table]:
        """The same for each of several queries."""
        return [self.table(sql, **values) for sql, values in queries]

    def _read_broken(self, sql: str, values: Mapping[str, Any]) -> Table:
        """Read rows with text that cannot be decoded, which hardly any file has."""
        from hermes.state.sqlite import invalid_utf8

        return invalid_utf8.read(self.connection, sql, bind(values))

    def run(self, sql: str, /, **values: Any) -> int:
        """Execute one statement and return how many rows it changed."""
        self._execute(sql, bind(values)).fetchall()
        return self.connection.changes()

    def send(self, sql: str, /, **values: Any) -> None:
        """Execute one statement whose result the caller does not need."""
        self._execute(sql, bind(values)).fetchall()

    def require(self, guard: Guard, /) -> None:
        """Raise the guard's error unless its row is there; no lock: a file has one writer."""
        if self.row(f"SELECT 1 FROM {guard.table} WHERE {guard.condition}", **guard.values) is None:
            raise guard.error()

    def lock_and_number(self, sql: str, count: int, /, **values: Any) -> tuple[Values | None, Sequence[int]]:
        """The first row of a query; no lock and no ids: a file has one writer, and SQLite numbers rows on insert."""
        return self.row(sql, **values), ()

    def lock_and_read(self, lock: str, read: str, /, **values: Any) -> tuple[Values | None, list[Values]]:
        """The first row of a query, and the rows of a second query that uses it; no lock: a file has one writer."""
        held = self.row(lock, **values)
        return held, [] if held is None else self.rows(read, locked=held[0], **values)

    def insert_messages(self, rows: Sequence[Mapping[str, Any]], /) -> Sequence[int]:
        """Insert messages, each with its own columns, and return their ids."""
        return insert_messages(self.connection, rows)

    def add_plain(
        self, session_id: str, rows: Sequence[Mapping[str, Any]], preview: str | None, calls: int, asker: Asker, /
    ) -> Sequence[int] | None:
        """Add visible messages with new uids and return their ids; None if the session needs more than one update."""
        return add_plain(self.connection, session_id, rows, preview, calls, asker)

    def note_added_message(self, message_id: int) -> None:
        """Note that a message was added, so that the search index is updated after the commit."""
        self.newest_message = message_id

    def run_many(self, sql: str, many: Sequence[dict[str, Any]], /) -> None:
        """Execute one statement for each set of values."""
        self.connection.executemany(sql, [bind(values) for values in many]).fetchall()


def connect(path: Path | str, flags: int, *, runs_triggers: bool = False, is_defended: bool = True) -> apsw.Connection:
    """Return a connection that runs no code from the file; every connection to a file is made here.

    Views are never used. Triggers run only on request, by callers who know that all of them are ours. A connection
    that is not defended may rewrite SQLite's internal tables.
    """
    connection = apsw.Connection(str(path), flags=flags)
    for option, is_on in (
        (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, False),
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, is_defended),
        (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, False),
        (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, runs_triggers),
        (apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, False),
        (apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, False),
        (apsw.SQLITE_DBCONFIG_DQS_DML, False),
        (apsw.SQLITE_DBCONFIG_DQS_DDL, False),
    ):
        connection.config(option, int(is_on))
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def run_triggers(connection: apsw.Connection) -> None:
    """Let a connection run the triggers of its file, which the caller has checked to be ours."""
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)


def quote_name(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def allow_internal_writes(connection: apsw.Connection) -> Iterator[None]:
    """Let a connection rewrite SQLite's internal tables inside the block."""
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        yield
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)


def open_writer(path: Path, *, runs_triggers: bool = True) -> apsw.Connection:
    """Open the one writing connection of a process: every commit is on disk before it returns."""
    connection = connect(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, runs_triggers=runs_triggers)
    # Without a WAL the directory must be synced too, after the journal has been removed.
    sync = "full" if choose_journal(connection, path) == "wal" else "extra"
    for pragma in (f"synchronous = {sync}", "wal_autocheckpoint = 0", "foreign_keys = on"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    _set_caches(connection)
    return connection


def open_reader(path: Path, *, immutable: bool = False) -> apsw.Connection:
    """Open a connection that can only read, and so never removes a WAL."""
    uri = f"file:{quote(os.fsencode(path))}?mode=ro" + ("&immutable=1" if immutable else "")
    connection = connect(uri, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    _set_caches(connection)
    return connection


def open_unshared(path: Path) -> apsw.Connection:
    """Open a reader of a file and its log in a directory that cannot be written; no other process may have them open.

    The index of the log, normally in shared memory, is built in the memory of this process. No lock is taken, because
    that needs the right to write.
    """
    uri = f"file:{quote(os.fsencode(path))}?mode=ro&vfs=unix-none"
    connection = connect(uri, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("PRAGMA locking_mode = exclusive").fetchall()
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        _set_caches(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def open_foreign(path: Path, *, immutable: bool = False) -> apsw.Connection:
    """Open an unknown file: the connection reads tables, and can do nothing else."""
    connection = open_reader(path, immutable=immutable)
    only_read(connection)
    return connection


def only_read(connection: apsw.Connection) -> None:
    """Let SQLite refuse every statement of a connection that does more than read its tables and describe them."""
    connection.authorizer = _authorize_reading


def _authorize_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == apsw.SQLITE_PRAGMA:
        # The second name is the value that a setting would get, or the table to describe.
        is_harmless = first in _DESCRIBING_PRAGMAS or (first in _READ_PRAGMAS and second is None)
    else:
        is_harmless = action in _READING_ACTIONS
    return apsw.SQLITE_OK if is_harmless else apsw.SQLITE_DENY


def has_moved(connection: apsw.Connection) -> bool:
    """Whether the file of a connection is no longer the one at its path."""
    result = array("i", [0])
    connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, result.buffer_info()[0])
    return bool(result[0])


def close_keeping_files(connection: apsw.Connection) -> None:
    """Close a connection without touching the files next to its database.

    The last connection to close removes the log by name, and by now the name may belong to the log of another file.
    """
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def _set_caches(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA cache_size = -16384").fetchall()
    connection.execute("PRAGMA temp_store = memory").fetchall()


@contextmanager
def time_limit(connection: apsw.Connection, limit_s: float) -> Iterator[None]:
    """Raise `OutOfTime` when the statements inside have taken this long."""
    deadline = time.monotonic() + limit_s
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_CHECKS)
    try:
        yield
    except apsw.InterruptError:
        raise OutOfTime from None
    finally:
        connection.set_progress_handler(None)
