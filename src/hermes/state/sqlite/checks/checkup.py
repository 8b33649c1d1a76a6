"""A checkup of an SQLite file: it reads everything about the file and changes nothing.

A file that is open in a process is read like any reader reads it. A closed file is read without a lock, because even
a reader would leave a log and shared memory next to it. If a process opens it meanwhile, the results of the lockless
read are dropped, and the checkup runs again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw

from hermes.errors import HermesError, StoreBusy, StoreError
from hermes.state.engine import Report
from hermes.state.maintenance.findings import (
    Check,
    CheckResult,
    Finding,
    Status,
    error,
    not_checked,
    run_check,
    warning,
)
from hermes.state.sqlite.checks import (
    counters,
    file,
    index,
    integrity,
    leftovers,
    orphans,
    processes,
    sizes,
    sqlite_version,
)
from hermes.state.sqlite.checks.subject import REPAIR_HINT, Subject, Watch
from hermes.state.sqlite.connection import View, open_reader, open_unshared
from hermes.state.sqlite.errors import translate
from hermes.state.sqlite.files.long_read import LogWatch
from hermes.state.sqlite.files.names import JOURNAL, LOG, SHARED_MEMORY, beside, bytes_of, real_file

_HALF_DONE = (apsw.SQLITE_READONLY_ROLLBACK, apsw.SQLITE_READONLY_RECOVERY)
"""SQLite's error codes when it would have to write before it can read."""


@dataclass(frozen=True, slots=True)
class FileCheck:
    """A check of the file from outside."""

    name: str
    group: str
    run: Callable[[Subject], CheckResult]


@dataclass(frozen=True, slots=True)
class ContentCheck:
    """A check of what is in the file; most checks need this program's tables."""

    name: str
    group: str
    run: Callable[[Subject, View], CheckResult]
    of_any_file: bool = False


CHECKS: tuple[FileCheck | ContentCheck, ...] = (
    FileCheck("engine", "program", sqlite_version.versions),
    FileCheck("file", "file", file.presence),
    ContentCheck("schema", "file", file.origin, of_any_file=True),
    FileCheck("permissions", "file", file.permissions),
    FileCheck("place", "file", file.file_system),
    ContentCheck("journal", "file", file.journal, of_any_file=True),
    ContentCheck("size", "size", sizes.database, of_any_file=True),
    ContentCheck("free-pages", "size", sizes.free_pages, of_any_file=True),
    FileCheck("wal", "size", sizes.log),
    FileCheck("disk", "size", sizes.disk),
    ContentCheck("integrity", "content", integrity.integrity, of_any_file=True),
    ContentCheck("orphan-messages", "content", orphans.messages),
    ContentCheck("orphan-sessions", "content", orphans.sessions),
    ContentCheck("pending-links", "content", orphans.pending),
    ContentCheck("changed-elsewhere", "content", counters.changed_elsewhere),
    ContentCheck("counters", "content", counters.messages),
    ContentCheck("usage", "content", counters.usage),
    ContentCheck("index", "search", index.progress),
    ContentCheck("index-parity", "search", index.parity),
    FileCheck("holders", "use", processes.holders),
    FileCheck("writer", "use", processes.writer),
    FileCheck("readers", "use", processes.readers),
    FileCheck("left-behind", "use", processes.left_behind),
    ContentCheck("leases", "use", processes.leases),
    FileCheck("spool", "beside", leftovers.spool),
    FileCheck("leftovers", "beside", leftovers.leftovers),
    FileCheck("backups", "beside", leftovers.backups),
)


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """The result of trying to open the file."""

    view: View | None = None
    is_ours: bool = False
    is_lockless: bool = False
    trouble: Exception | None = None


def examine(
    path: Path, *, backups: Path, now: float, is_deep: bool = False, report: Report | None = None
) -> list[Finding]:
    """Run every check of a file: quickly, or deeply over all of it."""
    watch = Watch(report, is_deep=is_deep, log=LogWatch(path) if is_deep else None)
    subject = Subject(path, real_file(path), backups, now, watch)
    findings, is_certain = _run_checks(subject, may_be_lockless=True)
    return findings if is_certain else _run_checks(subject, may_be_lockless=False)[0]


def _run_checks(subject: Subject, *, may_be_lockless: bool) -> tuple[list[Finding], bool]:
    """Run every check; also return False if another process may have changed the file during a lockless read."""
    before = _file_state(subject.file)
    explain = partial(_explain, subject)
    findings = []
    with _try_open(subject, may_be_lockless=may_be_lockless) as attempt:
        checks = [check for each in CHECKS if (check := _check(each, subject, attempt)) is not None]
        for number, check in enumerate(checks):
            subject.watch.begin(check.name, number, len(checks))
            findings.append(run_check(check, explain))
    return findings, not attempt.is_lockless or _file_state(subject.file) == before


def _check(what: FileCheck | ContentCheck, subject: Subject, attempt: OpenAttempt) -> Check | None:
    """The check to run; None if there is nothing to check yet."""
    if isinstance(what, FileCheck):
        return Check(what.name, what.group, partial(what.run, subject))
    if attempt.view is not None and (attempt.is_ours or what.of_any_file):
        return Check(what.name, what.group, partial(_in_snapshot, what.run, subject, attempt.view))
    if attempt.view is not None:
        why = not_checked("its tables are not those of this version")
    elif attempt.trouble is None:
        return None
    else:
        why = not_checked("the file cannot be opened")
        if what.run is file.origin:
            why = _explain(subject, attempt.trouble)
    return Check(what.name, what.group, lambda: why)


def _in_snapshot(run: Callable[[Subject, View], CheckResult], subject: Subject, view: View) -> CheckResult:
    """Run a check in one transaction, so that everything it compares is from one moment."""
    view.run("BEGIN")
    try:
        return run(subject, view)
    finally:
        if view.connection.in_transaction:
            view.run("ROLLBACK")


@contextmanager
def _try_open(subject: Subject, *, may_be_lockless: bool) -> Iterator[OpenAttempt]:
    if not file.has_content(subject):
        yield OpenAttempt()
        return
    try:
        connection, is_lockless = _open(subject.file, may_be_lockless=may_be_lockless)
    except apsw.Error as exc:
        yield OpenAttempt(trouble=exc)
        return
    try:
        view = View(connection)
        yield OpenAttempt(view, _is_ours(subject, view), is_lockless)
    finally:
        connection.close()


def _open(database: Path, *, may_be_lockless: bool) -> tuple[apsw.Connection, bool]:
    """Open a file for reading; without a lock if it has a log and no process has it open, or if nothing else works."""
    if may_be_lockless and not any(_companions(database)):
        connection = open_reader(database, immutable=True)
        if file.uses_log(View(connection)):
            return connection, True
        connection.close()
    try:
        return open_reader(database), False
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        if os.path.exists(beside(database, JOURNAL)):
            raise
        # Where no shared memory can be created, no other process shares it either.
        if bytes_of(beside(database, LOG)) and not os.path.exists(beside(database, SHARED_MEMORY)):
            return open_unshared(database), True
        return open_reader(database, immutable=True), True


def _is_ours(subject: Subject, view: View) -> bool:
    try:
        return file.is_ours(subject, view)
    except Exception:  # noqa: BLE001 - any error of a damaged file; the schema check reports it
        return False


def _file_state(database: Path) -> tuple[object, ...]:
    """What changes when a process opens a file that has a log, or writes to it."""
    moments: tuple[object, ...] = ()
    with suppress(OSError):
        status = database.stat()
        moments = (status.st_ino, status.st_size, status.st_mtime_ns)
    return (*moments, *_companions(database))


def _companions(database: Path) -> list[bool]:
    """For each file that SQLite keeps next to a database in use: whether it exists."""
    return [os.path.exists(beside(database, suffix)) for suffix in (LOG, SHARED_MEMORY, JOURNAL)]


def _explain(subject: Subject, exc: Exception) -> CheckResult:
    """Turn the error of a check into its result."""
    if isinstance(exc, apsw.CorruptError):
        return error(f"not checked: the file is damaged ({exc})", REPAIR_HINT, checked=False)
    if isinstance(exc, apsw.NotADBError):
        return error(
            f"{subject.path} is not an SQLite database, or its beginning is damaged",
            f"if there were sessions in it: {REPAIR_HINT}; if not, move it away or set sessiondb.path to another file",
            checked=False,
        )
    if getattr(exc, "extendedresult", 0) in _HALF_DONE:
        return warning(
            "not checked: a program died during a write, and SQLite must roll that write back first",
            subject.rollback_command,
            checked=False,
        )
    translated = translate(exc, subject.path) if isinstance(exc, apsw.Error) else exc
    if isinstance(translated, StoreBusy):
        return not_checked(translated.message, remedy="try again when the other process has finished")
    if isinstance(translated, HermesError):
        # A plain StoreError need not be the fault of the file.
        severity = Status.WARNING if type(translated) is StoreError else Status.ERROR
        return not_checked(translated.message, severity, translated.hint)
    return not_checked(f"{type(exc).__name__}: {exc}", Status.WARNING, "try again; the other checks ran")
