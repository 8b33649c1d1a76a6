"""Opening a file for reading only, whichever program wrote it and wherever it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw

from hermes.errors import NotADatabase, StoreTooNew, StoreUnavailable
from hermes.state.sqlite.connection import View, open_reader, open_unshared
from hermes.state.sqlite.files.names import (
    LOG,
    SHARED_MEMORY,
    beside,
    bytes_of,
    real_file,
    refuse_lone_log,
    refuse_special_files,
)
from hermes.state.sqlite.schema import old_file_view
from hermes.state.sqlite.schema.definitions import schema_sql
from hermes.state.sqlite.schema.inspection import FORMAT, SchemaState, inspect_view, refuse_unsafe_schema


def reader_factory(path: Path) -> Callable[[], apsw.Connection]:
    """Return a function that opens a file for reading only; raise if it cannot be opened."""
    if path.is_dir():
        raise NotADatabase(f"{path} is a directory", hint="name the database file in it")
    if not path.exists():
        raise StoreUnavailable(f"there is no session database at {path}", hint="check the path")
    refuse_lone_log(path)
    open_file = raw_reader_factory(path)

    def connect() -> apsw.Connection:
        connection = open_file()
        try:
            view = View(connection)
            inspection = inspect_view(view, path)
            if inspection.min_reader > FORMAT:
                raise StoreTooNew(f"{path} was written by a newer version of Hermes")
            refuse_unsafe_schema(path, inspection)
            if inspection.state is SchemaState.OURS:
                old_file_view.add_missing(view, schema_sql())
            elif inspection.state is not SchemaState.CURRENT:
                old_file_view.show_as_current(view, schema_sql())
        except BaseException:
            connection.close()
            raise
        return connection

    connect().close()
    return connect


def raw_reader_factory(path: Path) -> Callable[[], apsw.Connection]:
    """Return a function that opens a file and its log for reading only, even in a directory without write access.

    The schema of the file is not checked.
    """
    refuse_special_files(path)
    try:
        connection = open_reader(path)
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        finally:
            connection.close()
    except (apsw.CantOpenError, apsw.ReadOnlyError) as exc:
        file = real_file(path)
        if not bytes_of(beside(file, LOG)):
            return partial(open_reader, path, immutable=True)
        if beside(file, SHARED_MEMORY).exists():
            # Another process may be writing, and only the shared memory says what it has committed.
            raise StoreUnavailable(
                f"{path} has a log that cannot be read with the rights of this process: {exc}",
                hint=f"open it as a user who may read and write in {file.parent}, or copy it with its -wal elsewhere",
            ) from exc
        return partial(open_unshared, path)
    return partial(open_reader, path)
