"""Restoring a backup: a copy of it replaces the database, and the old file is kept."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import NamedTuple

import apsw

from hermes.errors import HermesError, InvalidValue, NotADatabase, StoreBusy, StoreCorrupt, StoreError
from hermes.home import create_private_file, ensure_private_dir
from hermes.state.engine import Report, Values
from hermes.state.sqlite.amounts import checked_timeout
from hermes.state.sqlite.backup.backup import PARTIAL, directory_lock, give_to_owner
from hermes.state.sqlite.checks.verify import Contents, DefectKind, Depth, Verdict, contents_of, verify
from hermes.state.sqlite.connection import View, connect
from hermes.state.sqlite.errors import translate
from hermes.state.sqlite.files.byte_copy import copy_bytes
from hermes.state.sqlite.files.long_read import open_long_read
from hermes.state.sqlite.files.names import LOG, beside, bytes_of, real_file, remove, timestamped_path
from hermes.state.sqlite.files.open_by import refuse_foreign_programs
from hermes.state.sqlite.files.page_copy import copy_database, sync_file, write_error
from hermes.state.sqlite.files.swap import POLL_S, checkpoint_fully, replace_database, writer_lock_held
from hermes.state.sqlite.journal_mode import choose_journal
from hermes.state.sqlite.schema.inspection import SchemaState, inspect, inspect_view
from hermes.state.sqlite.schema.upgrade import remove_foreign

TIMEOUT_S = 60.0
REPLACED = "replaced"


class Loss(NamedTuple):
    """What a database has that a backup of it lacks."""

    contents: Contents | None
    """Everything in the database; None if it is empty or cannot be read."""
    sessions: int = 0
    messages: int = 0
    trouble: str = ""
    """Why it cannot be read."""


def compare(database: Path, backup: Path) -> Loss:
    """Count what would be lost if a backup replaced a database."""
    _refuse_replacing(database)
    if not bytes_of(database) and not bytes_of(beside(real_file(database), LOG)):
        return Loss(None)
    try:
        # The database is opened last, so that an error of it is reported with its path.
        with open_long_read(backup, in_use=False) as past, open_long_read(database) as present:
            return Loss(
                contents_of(View(present)),
                sessions=_sessions_only_in(present, past),
                messages=_messages_only_in(present, past),
            )
    except StoreError as exc:
        return Loss(None, trouble=exc.message)


def restore(
    database: Path, verdict: Verdict, *, timeout_s: float = TIMEOUT_S, report: Report | None = None
) -> Path | None:
    """Replace a database with a copy of a verified file; return the path of the old file, if there was one.

    The caller must not have the database open. Other processes of this program notice the new file on their own. A
    process that dies in here leaves either the old database or the restored one.
    """
    timeout_s = checked_timeout("timeout_s", timeout_s)
    require_restorable(database, verdict)
    target = real_file(database)
    ensure_private_dir(target.parent)
    draft = beside(target, f".restored{PARTIAL}")
    with directory_lock(target.parent):
        remove(draft)
        try:
            _write_draft(draft, verdict.path, target, report)
            create_private_file(target)
            with writer_lock_held(target, timeout_s):
                _remove_second_names(target)
                refuse_foreign_programs(target)
                _refuse_replacing(target)
                return _replace(target, draft, timeout_s)
        except OSError as exc:
            raise write_error(target, exc) from exc
        finally:
            remove(draft)


def require_restorable(database: Path, verdict: Verdict) -> None:
    """Raise if a file must not replace a database."""
    if database.exists() and verdict.path.samefile(database):
        raise InvalidValue(f"{verdict.path} is the database itself", hint="`hermes sessions restore` lists the backups")
    for defect in verdict.defects:
        if defect.kind is DefectKind.DAMAGE:
            raise StoreCorrupt(f"{verdict.path} was not restored: {defect.message}", hint=defect.hint)
        if defect.kind is DefectKind.FOREIGN:
            raise NotADatabase(f"{verdict.path} was not restored: {defect.message}", hint=defect.hint)
    refuse_foreign_programs(real_file(database))


def _refuse_replacing(database: Path) -> None:
    """Raise if another program owns the database; a file that cannot be read may be replaced."""
    if not bytes_of(database):
        return
    try:
        inspection = inspect(database)
    except apsw.Error:
        return
    if inspection.state is SchemaState.UPSTREAM:
        raise NotADatabase(
            f"{database} has schema {inspection.version} of another program and is not replaced",
            hint="set sessiondb.path to a file of your own",
        )


def _write_draft(draft: Path, backup: Path, database: Path, report: Report | None) -> None:
    """Write the file that becomes the database."""
    copy_database(backup, draft, report, in_use=False)
    if verify(draft, Depth.QUICK, report=report).has(DefectKind.DAMAGE, DefectKind.FOREIGN):
        raise StoreCorrupt(f"the copy of {backup} is damaged", hint="check the disk; nothing was changed")
    try:
        connection = connect(draft, apsw.SQLITE_OPEN_READWRITE)
        try:
            _remove_foreign(View(connection), draft)
            choose_journal(connection, database)
        finally:
            connection.close()
    except apsw.Error as exc:
        raise translate(exc, draft) from exc
    if database.exists():
        shutil.copymode(database, draft)
        give_to_owner(draft, database)
    sync_file(draft)


def _remove_foreign(view: View, draft: Path) -> None:
    """Drop tables and triggers of other programs from a copy of our own store; opening it upgrades an older one."""
    inspection = inspect_view(view, draft)
    if inspection.state is SchemaState.OURS:
        view.run("BEGIN IMMEDIATE")
        remove_foreign(view, inspection.foreign)
        view.run("COMMIT")


def _replace(database: Path, draft: Path, timeout_s: float) -> Path | None:
    # SQLite would remove the log of an empty database.
    is_settled = bytes_of(database) > 0 and _checkpoint(database, timeout_s)
    kept = _keep_old_file(database, with_log=not is_settled)
    try:
        replace_database(database, draft)
    except BaseException:
        _remove_second_names(database)
        raise
    return kept


def _checkpoint(database: Path, timeout_s: float) -> bool:
    """Move the log of a database into it, so that it is one file; return False if the database is too damaged."""
    deadline = time.monotonic() + timeout_s
    while not checkpoint_fully(database):
        if not _is_readable(database):
            return False
        if time.monotonic() > deadline:
            raise StoreBusy(f"{database} is being read by other processes", hint="try again when they have finished")
        time.sleep(POLL_S)
    return True


def _is_readable(database: Path) -> bool:
    try:
        inspect(database)
    except (apsw.Error, HermesError):
        return False
    return True


def _keep_old_file(database: Path, *, with_log: bool) -> Path | None:
    """Give the file a second name, which stays when another file takes its first name.

    A link takes no disk space and no time, during which writers would wait, and keeps even a damaged file unchanged.
    """
    suffixes = ["", LOG] if with_log and bytes_of(beside(database, LOG)) else [""]
    if not any(bytes_of(beside(database, suffix)) for suffix in suffixes):
        return None
    kept = timestamped_path(database, REPLACED)
    for suffix in suffixes:
        file, second_name = beside(database, suffix), beside(kept, suffix)
        try:
            os.link(file, second_name)
        except OSError:
            # Not every file system has links. The writer lock is held, so the file does not change during the copy.
            copy_bytes(file, second_name)
            give_to_owner(second_name, database)
    return kept


def _remove_second_names(database: Path) -> None:
    """Remove the second names that `_keep_old_file` left if the file was not replaced: one file needs one name."""
    own = [each.stat() for each in (database, beside(database, LOG)) if each.exists()]
    for each in database.parent.glob(f"{escape(database.name)}.{REPLACED}-*"):
        if any(os.path.samestat(each.stat(), status) for status in own):
            each.unlink()


def _sessions_only_in(present: apsw.Connection, past: apsw.Connection) -> int:
    kept = {row[0] for row in past.execute("SELECT id FROM main.sessions")}
    return sum(row[0] not in kept for row in present.execute("SELECT id FROM main.sessions"))


def _messages_only_in(present: apsw.Connection, past: apsw.Connection) -> int:
    """Count the messages that are not in the other file, where an import may have given them other ids."""
    has_uids = all(_has_uids(each) for each in (present, past))
    key = "uid" if has_uids else "id"
    messages = f"SELECT session_id, {key}, timestamp FROM main.messages ORDER BY session_id, {key}"
    others: Iterator[Values] = past.execute(messages)
    other = next(others, None)
    count = 0
    for message in present.execute(messages):
        while other is not None and _comes_before(other, message):
            other = next(others, None)
        count += message != other
    return count


def _has_uids(connection: apsw.Connection) -> bool:
    """Whether every message has a uid; files of earlier versions and of other programs have messages without one."""
    columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info('messages')")]
    return "uid" in columns and not connection.execute("SELECT 1 FROM main.messages WHERE uid IS NULL LIMIT 1").get


def _comes_before(one: Values, other: Values) -> bool:
    """Whether a row comes before another one in the order of session and key, as SQLite compares values."""
    return [_sort_key(value) for value in one[:2]] < [_sort_key(value) for value in other[:2]]


def _sort_key(value: object) -> tuple[int, object]:
    """SQLite puts NULL first, then numbers, texts by their bytes, and blobs."""
    if value is None:
        return 0, 0
    if isinstance(value, str):
        return 2, value.encode(errors="surrogateescape")
    return (1, value) if isinstance(value, int | float) else (3, value)
