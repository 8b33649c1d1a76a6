"""Whose a database file is, and how it is brought to the present: created, upgraded, healed, or only read."""

from __future__ import annotations

import os
import time
from binascii import crc32
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
)
from hermes.state.sqlite.files.swap import checkpoint_fully, finish_swap, replacement_path
from hermes.state.sqlite.files.writer_lock import WriterLock
from hermes.state.sqlite.schema import upgrade
from hermes.state.sqlite.schema.definitions import (
    ForeignSchema,
    describe_columns,
    find_foreign,
    read_definitions,
    schema_sql,
)
from hermes.state.sqlite.search import index_state

SCHEMA_VERSION = 11
LEDGER = {
    "0001_store": "d9dfaba7",
    "0002_search": "9c4b128e",
    "0003_insights": "2cdd8e29",
    "0004_parts": "3433750f",
    "0005_owners": "d60c8ecc",
    "0006_replaced": "935e72c1",
}
"""What this store adds beyond version 11, by name, and the checksum of the schema since each addition.

Whoever changes schema.sql adds a name. A file in which this code finds a name that it does not know belongs to a newer
one, which alone may put it right.
"""

FORMAT = 1
"""What this code can read and write; a file's `min_reader` and `min_writer` are compared with it."""

OPEN_TIMEOUT_S = 120.0


class SchemaState(StrEnum):
    """Whose a file is."""

    FRESH = "fresh"
    CURRENT = "current"
    OURS = "ours"
    """Ours, but something is to be done: a later addition, or what another program changed."""
    OLD = "old"
    UPSTREAM = "upstream"
    """Written by a later version of another program: never altered."""


class Inspection(NamedTuple):
    """What a file says about itself."""

    state: SchemaState
    version: int
    min_reader: int = 0
    min_writer: int = 0
    is_newer: bool = False
    """Whether a newer version has added something to it."""
    foreign: ForeignSchema = ForeignSchema()
    """What others have put into its schema."""


class WritableFile(NamedTuple):
    """A file ready for writing."""

    connection: apsw.Connection
    lock: WriterLock
    indexed_upto: int
    newest_message: int


def checksum(schema: str) -> str:
    """A checksum of a schema; not to keep a secret but to notice a change, so the one that loads no OpenSSL."""
    return f"{crc32(schema.encode()):08x}"


def open_for_writing(path: Path) -> WritableFile | None:
    """Bring a file to the present and open it; None if it belongs to another program and may only be read."""
    _prepare_directory(path)
    # Through whichever link a file is named, it has one pair of lock files.
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
                # Whoever had the lock before may have done it already.
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
    """Look at a file, and put its schema right if SQLite cannot read it because something stands in it twice."""
    try:
        return inspect(path)
    except apsw.CorruptError:
        # Hardly any file is damaged.
        from hermes.state.sqlite.schema.doubled_definitions import remove_doubled

        _acquire(lock)
        try:
            if not remove_doubled(path):
                raise
        finally:
            lock.release()
        return inspect(path)


def inspect(path: Path) -> Inspection:
    """Look at a file without changing a byte of it."""
    if not path.exists() or (path.stat().st_size == 0 and not beside(real_file(path), LOG).exists()):
        return Inspection(SchemaState.FRESH, 0)
    connection = open_reader(path)
    try:
        return inspect_view(View(connection), path)
    finally:
        connection.close()


def read_only_hint(path: Path) -> str:
    """What a person can do who wants to write to a file that is only read."""
    if inspect(path).state is not SchemaState.UPSTREAM:
        return "open it without read_only"
    return import_hint(path)


def import_hint(path: Path) -> str:
    """What a person does to go on with the sessions of another program's file."""
    import shlex

    return (
        "it is that program's; to go on with its sessions, have a file of your own (sessiondb.path in config.yaml, or"
        f" another HERMES_HOME), then: hermes sessions import {shlex.quote(str(path))}"
    )


def _prepare_directory(path: Path) -> None:
    if path.is_dir():
        raise NotADatabase(f"{path} is a directory", hint="name a file in it, such as state.db")
    file = real_file(path)
    try:
        ensure_private_dir(path.parent)
        if not file.exists() and bytes_of(beside(file, LOG)) and not replacement_path(file).exists():
            # What was stored last may be in it alone.
            warn(__name__, "%s is gone, but its log is not; that is kept as %s", path, keep_orphaned_log(file))
        _refuse_lost_link(path, file)
        # A link that leads to no file yet gets one where it leads to.
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
        checkpoint_fully(path)  # undoes what a crash left half done, which a reader may not


def _refuse_lost_link(path: Path, file: Path) -> None:
    """Raise if a link leads to a directory that is not there: a disk may not be mounted, and is not made up for."""
    if path.is_symlink() and (file.is_symlink() or not file.parent.is_dir()):
        raise StoreUnavailable(
            f"{path} is a link to {os.readlink(path)}, and there is no such place",
            hint="bring back what it leads to (is a disk not mounted?), or remove the link",
        )


def inspect_view(view: View, path: Path) -> Inspection:
    """Look at a file that is open."""
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
    is_newer = not applied.keys() <= LEDGER.keys()
    untouched = is_newer or (
        version == SCHEMA_VERSION
        and meta.get("schema_cookie") == str(view.value("PRAGMA schema_version"))
        and applied == LEDGER
        and not foreign.removable
        and not foreign.has_lost_index
        and index_state.has_valid_mark(view)
        and not upgrade.has_foreign_rows(view)
    )
    return Inspection(
        SchemaState.CURRENT if untouched else SchemaState.OURS,
        version,
        min_reader=_format(meta.get("min_reader"), path),
        min_writer=_format(meta.get("min_writer"), path),
        is_newer=is_newer,
        foreign=foreign,
    )


def _version(view: View, path: Path) -> int:
    return _format(view.value("SELECT MAX(version) FROM schema_version"), path)


def _format(noted: object, path: Path) -> int:
    number = 0 if noted is None else whole_number(noted)
    if number is None:
        raise StoreCorrupt(f"{path} does not say by a number which version wrote it")
    return number


def _upgrade_file(path: Path) -> None:
    """Create, upgrade or heal a file in one transaction; a crash in the middle changes nothing."""
    connection = open_writer(path, runs_triggers=False)
    saved: Path | None = None
    try:
        view = View(connection)
        _begin(view)
        # A program that knows nothing of the lock may have been there since the file was inspected.
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
        upgrade.adopt_foreign_rows(view)
        _record_schema(view)
        view.run("COMMIT")
        saved = None
        if inspection.state is SchemaState.OURS and inspection.foreign.removable:
            warn(__name__, "%s was removed from %s: it is not Hermes's", inspection.foreign.describe(), path)
        store_schema_cookie(view)
    except BaseException:
        connection.close()
        if saved is not None:
            saved.unlink(missing_ok=True)  # nothing was changed, and the next attempt makes its own copy
        raise
    connection.close()


def store_schema_cookie(view: View) -> None:
    """Note how often the schema has changed; that is settled only once a change is committed."""
    view.run(
        "UPDATE state_meta SET value = :cookie WHERE key = 'schema_cookie'",
        cookie=str(view.value("PRAGMA schema_version")),
    )


def refuse_unsafe_schema(path: Path, inspection: Inspection) -> None:
    """Raise if the schema of a file makes it unsafe even to read it."""
    _refuse_definitions(path, inspection.foreign.unsafe)


def _refuse_definitions(path: Path, found: tuple[str, ...]) -> None:
    if found:
        raise StoreCorrupt(
            f"{path} is not opened, because others have changed its tables: {'; '.join(found)}",
            hint="`hermes sessions repair` brings its sessions and messages into a new file",
        )


def _refuse_writing(path: Path, inspection: Inspection) -> None:
    _refuse_newer(path, inspection)
    refuse_unsafe_schema(path, inspection)
    if inspection.state is not SchemaState.UPSTREAM:
        _refuse_definitions(path, inspection.foreign.rules)
    if inspection.is_newer and inspection.foreign.triggers:
        raise StoreTooNew(
            f"{path} has triggers that this version of Hermes does not know: {', '.join(inspection.foreign.triggers)}",
            hint="update Hermes, or open it with read_only=True; the file was left as it is",
        )


def _refuse_newer(path: Path, inspection: Inspection) -> None:
    if max(inspection.min_reader, inspection.min_writer) > FORMAT:
        readable = inspection.min_reader <= FORMAT
        raise StoreTooNew(
            f"{path} was written by a newer version of Hermes",
            hint=f"update Hermes{', or open it with read_only=True' * readable}; the file was left as it is",
        )


def _record_schema(view: View) -> None:
    """Note in the file what it is now."""
    now = time.time()
    view.run("DELETE FROM schema_version")
    view.run("INSERT INTO schema_version (version) VALUES (:version)", version=SCHEMA_VERSION)
    for name, known in LEDGER.items():
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
