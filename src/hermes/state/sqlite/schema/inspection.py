"""Which program a database file belongs to, and opening it for writing: created, upgraded or repaired first."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apsw

from hermes.errors import ConfigError, NotADatabase, StoreBusy, StoreCorrupt, StoreTooNew, StoreUnavailable
from hermes.home import create_private_file, ensure_private_dir
from hermes.log import inform, warn
from hermes.state.sqlite.amounts import whole_number
from hermes.state.sqlite.connection import View, open_reader, open_writer, run_triggers
from hermes.state.sqlite.errors import is_busy
from hermes.state.sqlite.files.names import (
    JOURNAL,
    LOG,
    beside,
    bytes_of,
    keep_orphaned_log,
    real_file,
    refuse_lone_log,
    refuse_special_files,
)
from hermes.state.sqlite.files.swap import checkpoint_fully, finish_swap, replacement_path
from hermes.state.sqlite.files.writer_lock import WriterLock
from hermes.state.sqlite.schema.definitions import (
    ForeignSchema,
    describe_columns,
    find_foreign,
    ledger,
    read_definitions,
    schema_sql,
)
from hermes.state.sqlite.search import index_state

SCHEMA_VERSION = 11
FORMAT = 1
"""The format that this code can read and write; a file's `min_reader` and `min_writer` are compared with it."""

OPEN_TIMEOUT_S = 120.0


class SchemaState(StrEnum):
    """Which program a file belongs to, and whether opening it has something to do."""

    FRESH = "fresh"
    CURRENT = "current"
    OURS = "ours"
    """Ours, but a migration is missing, or another program has changed something."""
    OLD = "old"
    UPSTREAM = "upstream"
    """Written by a later version of another program: never changed."""


class Inspection(NamedTuple):
    """What a file says about itself."""

    state: SchemaState
    version: int
    min_reader: int = 0
    min_writer: int = 0
    is_newer: bool = False
    """Whether it has a migration that this code does not know; then only newer code may repair its schema."""
    is_older: bool = False
    """Whether it lacks a migration; then an index with another definition may be its own, of an earlier schema."""
    foreign: ForeignSchema = ForeignSchema()
    """What other programs have added to its schema."""


class WritableFile(NamedTuple):
    """A file ready for writing."""

    connection: apsw.Connection
    lock: WriterLock
    indexed_upto: int
    newest_message: int


def open_for_writing(path: Path) -> WritableFile | None:
    """Upgrade a file and open it; return None if it belongs to another program and may only be read."""
    _prepare_directory(path)
    # A file has one pair of lock files, also if several links lead to it.
    lock = WriterLock(Path(os.path.realpath(path)))
    try:
        if replacement_path(path).exists():
            _acquire(lock)
            try:
                finish_swap(path)
            finally:
                lock.release()
        inspection = _inspect_or_fix_schema(path, lock)
        _refuse_writing(path, inspection)
        if inspection.state not in (SchemaState.CURRENT, SchemaState.UPSTREAM):
            _acquire(lock)
            try:
                # The process that had the lock before may have done it already.
                inspection = inspect(path)
                _refuse_writing(path, inspection)
                if inspection.state not in (SchemaState.CURRENT, SchemaState.UPSTREAM):
                    _upgrade_file(path)
            finally:
                lock.release()
        if inspection.state is SchemaState.UPSTREAM:
            warn(__name__, "%s; %s", f"{path} has schema {inspection.version} of another program", read_only_hint(path))
            lock.close()
            return None
        return _open_current(path, lock)
    except BaseException:
        lock.close()
        raise


def _inspect_or_fix_schema(path: Path, lock: WriterLock) -> Inspection:
    """Inspect a file. If SQLite cannot read it because its schema defines a name twice, repair the schema first."""
    try:
        return inspect(path)
    except apsw.CorruptError:
        # Imported here, because hardly any file is damaged.
        from hermes.state.sqlite.schema.doubled_definitions import remove_doubled

        _acquire(lock)
        try:
            if not remove_doubled(path):
                raise
        finally:
            lock.release()
        return inspect(path)


def inspect(path: Path) -> Inspection:
    """Inspect a file without changing a byte of it."""
    if not path.exists() or (path.stat().st_size == 0 and not beside(real_file(path), LOG).exists()):
        return Inspection(SchemaState.FRESH, 0)
    connection = open_reader(path)
    try:
        return inspect_view(View(connection), path)
    finally:
        connection.close()


def read_only_hint(path: Path) -> str:
    """What the user can do to write to a file that was opened for reading only."""
    if inspect(path).state is not SchemaState.UPSTREAM:
        return "open it without read_only"
    return import_hint(path)


def import_hint(path: Path) -> str:
    """What the user can do to continue the sessions of another program's file."""
    import shlex

    return (
        "it belongs to that program; to continue its sessions, choose a file of your own (sessiondb.path in config.yaml"
        f" or another HERMES_HOME), then: hermes sessions import {shlex.quote(str(path))}"
    )


def _prepare_directory(path: Path) -> None:
    if path.is_dir():
        raise NotADatabase(f"{path} is a directory", hint="name a file in it, such as state.db")
    refuse_special_files(path)
    file = real_file(path)
    try:
        ensure_private_dir(path.parent)
        if not file.exists() and bytes_of(beside(file, LOG)) and not replacement_path(file).exists():
            # The log may contain the newest messages.
            warn(__name__, "%s is missing, but its log exists; the log is kept as %s", path, keep_orphaned_log(file))
        _refuse_lost_link(path, file)
        # If `path` is a link to a missing file, the file is created where the link points.
        create_private_file(file)
    except ConfigError as exc:
        raise StoreUnavailable(exc.message, hint=exc.hint) from exc
    except OSError as exc:
        raise StoreUnavailable(
            f"{path} cannot be created: {exc.strerror}",
            hint=f"check that you may write to {path.parent}, or set HERMES_HOME",
        ) from exc
    refuse_lone_log(path)
    if beside(file, JOURNAL).exists():
        checkpoint_fully(path)  # rolls back an unfinished transaction after a crash, which a reader may not


def _refuse_lost_link(path: Path, file: Path) -> None:
    """Raise if a link points into a missing directory: its disk may not be mounted, and must not be replaced."""
    if path.is_symlink() and (file.is_symlink() or not file.parent.is_dir()):
        raise StoreUnavailable(
            f"{path} is a link to {os.readlink(path)}, which does not exist",
            hint="restore the target (is a disk not mounted?), or remove the link",
        )


def inspect_view(view: View, path: Path) -> Inspection:
    """Inspect a file that is open."""
    definitions = read_definitions(view)
    tables = {each.name for each in definitions if each.kind == "table"}
    if not tables - {"sqlite_sequence"}:
        return Inspection(SchemaState.FRESH, 0)
    if not {"sessions", "messages"} <= tables:
        raise NotADatabase(f"{path} is an SQLite database, but not one of sessions")
    version = _version(view, path) if "schema_version" in tables else 0
    foreign = find_foreign(definitions, partial(describe_columns, view))
    if "hermes_ledger" not in tables:
        state = SchemaState.OLD if version <= SCHEMA_VERSION else SchemaState.UPSTREAM
        return Inspection(state, version, foreign=foreign)
    meta: dict[str, str] = dict(
        view.rows("SELECT key, value FROM state_meta WHERE key IN ('min_reader', 'min_writer', 'schema_cookie')")
    )
    applied: dict[str, str] = dict(view.rows("SELECT name, checksum FROM hermes_ledger"))
    is_newer = not applied.keys() <= ledger().keys()
    untouched = is_newer or (
        version == SCHEMA_VERSION
        and meta.get("schema_cookie") == str(view.value("PRAGMA schema_version"))
        and applied == ledger()
        and not foreign.removable
        and not foreign.has_lost_index
        and index_state.has_valid_mark(view)
        and not _has_foreign_rows(view)
    )
    return Inspection(
        SchemaState.CURRENT if untouched else SchemaState.OURS,
        version,
        min_reader=_format(meta.get("min_reader"), path),
        min_writer=_format(meta.get("min_writer"), path),
        is_newer=is_newer,
        is_older=not ledger().keys() <= applied.keys(),
        foreign=foreign,
    )


def _has_foreign_rows(view: View) -> bool:
    """Whether another program has written to this store since it was last opened."""
    return (
        view.value("SELECT session_id FROM stale_sessions LIMIT 1") is not None
        or view.value("SELECT id FROM messages WHERE uid IS NULL LIMIT 1") is not None
    )


def _version(view: View, path: Path) -> int:
    return _format(view.value("SELECT MAX(version) FROM schema_version"), path)


def _format(noted: object, path: Path) -> int:
    number = 0 if noted is None else whole_number(noted)
    if number is None:
        raise StoreCorrupt(f"the version that {path} names is not a number")
    return number


def _upgrade_file(path: Path) -> None:
    """Create, upgrade or repair the schema of a file in one transaction; a crash in the middle changes nothing."""
    from hermes.state.sqlite.schema import upgrade  # late: most files need none

    connection = open_writer(path, runs_triggers=False)
    saved: Path | None = None
    try:
        view = View(connection)
        _begin(view)
        # A program that does not use the lock may have changed the file since it was inspected.
        inspection = inspect_view(view, path)
        if inspection.state is SchemaState.UPSTREAM:
            raise StoreBusy(f"another program is changing {path}")
        _refuse_writing(path, inspection)
        if inspection.state is SchemaState.OLD:
            saved = upgrade.back_up(path, inspection.version)
            inform(__name__, "upgrading %s from schema %s; a copy is kept as %s", path, inspection.version, saved)
        if inspection.state is not SchemaState.FRESH:
            upgrade.reconcile(view, schema_sql(), inspection.foreign)
        if inspection.state is SchemaState.OLD:
            upgrade.mark_all_stale(view)
        connection.execute(schema_sql()).fetchall()
        run_triggers(connection)
        if _has_foreign_rows(view):
            upgrade.adopt_foreign_rows(view)
        _record_schema(view)
        view.run("COMMIT")
        saved = None
        if inspection.state is SchemaState.OURS and inspection.foreign.removable and not inspection.is_older:
            warn(__name__, "removed %s from %s: not part of the schema of Hermes", inspection.foreign.describe(), path)
        store_schema_cookie(view)
    except BaseException:
        connection.close()
        if saved is not None:
            saved.unlink(missing_ok=True)  # the file is unchanged, and the next attempt makes its own copy
        raise
    connection.close()


def store_schema_cookie(view: View) -> None:
    """Store SQLite's count of schema changes; it is final only after the change is committed."""
    view.run(
        "UPDATE state_meta SET value = :cookie WHERE key = 'schema_cookie'",
        cookie=str(view.value("PRAGMA schema_version")),
    )


def refuse_unsafe_schema(path: Path, inspection: Inspection) -> None:
    """Raise StoreCorrupt if the schema of a file makes it unsafe even to read."""
    _refuse_definitions(path, inspection.foreign.unsafe)


def _refuse_definitions(path: Path, found: tuple[str, ...]) -> None:
    if found:
        raise StoreCorrupt(
            f"{path} is not opened, because another program has changed its tables: {'; '.join(found)}",
            hint="`hermes sessions repair` copies its sessions and messages into a new file",
        )


def _refuse_writing(path: Path, inspection: Inspection) -> None:
    _refuse_newer(path, inspection)
    refuse_unsafe_schema(path, inspection)
    if inspection.state is not SchemaState.UPSTREAM:
        _refuse_definitions(path, inspection.foreign.rules)
    if inspection.is_newer and inspection.foreign.triggers:
        raise StoreTooNew(
            f"{path} has triggers that this version of Hermes does not know: {', '.join(inspection.foreign.triggers)}",
            hint="update Hermes, or open it with read_only=True; the file was not changed",
        )


def _refuse_newer(path: Path, inspection: Inspection) -> None:
    if max(inspection.min_reader, inspection.min_writer) > FORMAT:
        readable = inspection.min_reader <= FORMAT
        raise StoreTooNew(
            f"{path} was written by a newer version of Hermes",
            hint=f"update Hermes{', or open it with read_only=True' * readable}; the file was not changed",
        )


def _record_schema(view: View) -> None:
    """Store the schema version, the ledger and the defaults of `state_meta`."""
    now = time.time()
    view.run("DELETE FROM schema_version")
    view.run("INSERT INTO schema_version (version) VALUES (:version)", version=SCHEMA_VERSION)
    for name, known in ledger().items():
        view.run(
            """INSERT INTO hermes_ledger (name, checksum, applied_at) VALUES (:name, :checksum, :now)
               ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum""",
            name=name,
            checksum=known,
            now=now,
        )
    defaults = {
        index_state.INDEXED_UPTO: "0",
        "schema_cookie": "",
        "min_reader": str(FORMAT),
        "min_writer": str(FORMAT),
    }
    for key, value in defaults.items():
        view.run(
            "INSERT INTO state_meta (key, value) VALUES (:key, :value) ON CONFLICT DO NOTHING", key=key, value=value
        )
    for table in index_state.TABLES:
        index_state.configure(view, table)


def _open_current(path: Path, lock: WriterLock) -> WritableFile:
    lock.open_lock_files()
    connection = open_writer(path)
    view = View(connection)
    mark = index_state.indexed_upto(view)
    return WritableFile(connection, lock, indexed_upto=mark, newest_message=index_state.newest_message(view))


def _acquire(lock: WriterLock) -> None:
    deadline = time.monotonic() + OPEN_TIMEOUT_S
    while not lock.try_acquire():
        if time.monotonic() > deadline:
            raise StoreBusy(f"another process is upgrading or writing the session database ({lock.holder()})")
        time.sleep(0.01)


def _begin(view: View) -> None:
    deadline = time.monotonic() + OPEN_TIMEOUT_S
    while True:
        try:
            view.run("BEGIN IMMEDIATE")
            return
        except apsw.Error as exc:
            if not is_busy(exc) or time.monotonic() > deadline:
                raise
