"""The file: whether it exists, which program made it, who may read it, and which file system it is on."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from hermes.state.maintenance.findings import CheckResult, error, note, ok, warning
from hermes.state.sqlite.checks.subject import DONE_ON_OPEN, REPAIR_HINT, Subject
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.files.names import JOURNAL, LOG, SHARED_MEMORY, beside, bytes_of, is_special
from hermes.state.sqlite.filesystem import file_system_of
from hermes.state.sqlite.schema import inspection as schema
from hermes.state.sqlite.schema.definitions import ledger as known_migrations
from hermes.state.sqlite.schema.inspection import FORMAT, Inspection, SchemaState

FILES = ("", LOG, SHARED_MEMORY, JOURNAL, ".lock", ".gate", ".spool")
OTHERS = 0o077

_HEADER_MODE, _WAL = 18, 2
"""The header byte that says how to read the file, and its value if the file has a WAL."""


def presence(subject: Subject) -> CheckResult:
    """Whether the file exists and has content."""
    path, file = subject.path, subject.file
    link = os.readlink(path) if os.path.islink(path) else None
    label = f"{path} (a link to {link})" if link else f"{path}"
    try:
        status = file.stat()
    except FileNotFoundError:
        if link is not None and file.parent.is_dir() and not file.is_symlink():
            return note(
                f"{path} is a link to {link}, where no file exists yet",
                "nothing to do for a new store; if there should be sessions, check that the disk is mounted",
                path=str(path),
                link=link,
            )
        if link is not None:
            return error(
                f"{path} is a link to {link}, which does not exist",
                f"mount the disk it leads to, or remove the link: {_command('rm', path)}",
                path=str(path),
                link=link,
            )
        return ok(f"{path}: nothing is stored yet", path=str(path), link=None, bytes=None)
    except OSError as exc:
        return error(
            f"{path} cannot be reached: {exc.strerror}",
            f"check who may enter {path.parent} and the directories above it",
            path=str(path),
            link=link,
        )
    details = {"path": str(path), "link": link, "bytes": status.st_size}
    if not stat.S_ISREG(status.st_mode):
        what = "a directory" if stat.S_ISDIR(status.st_mode) else "neither a file nor a directory"
        return error(f"{label} is {what}", "move it away, or set sessiondb.path to a file", **details)
    if is_special(journal := beside(file, JOURNAL)):
        return error(f"{journal} is not a file, so the database cannot be opened", "move it away", **details)
    if status.st_size == 0 and bytes_of(beside(file, LOG)):
        return error(
            f"{label} is empty, but its log {beside(file, LOG)} is not: the file was cut off",
            f"do not open it: SQLite would remove the log. Copy both to a safe place first, then: {REPAIR_HINT}",
            **details,
        )
    if status.st_size == 0:
        return ok(f"{label} is empty: nothing is stored yet", **details)
    return ok(label, **details)


def has_content(subject: Subject) -> bool:
    """Whether the file can be opened safely: SQLite would remove the log of an empty one, and wait for a pipe."""
    is_file = os.path.isfile(subject.file) and not is_special(beside(subject.file, JOURNAL))
    return is_file and bytes_of(subject.file) > 0


def origin(subject: Subject, view: View) -> CheckResult:
    """Which program made the tables, and of which version."""
    inspection = schema.inspect_view(view, subject.path)
    ledger = [name for (name,) in view.rows("SELECT name FROM hermes_ledger ORDER BY name")] if _is_ours(view) else []
    details = {
        "standing": str(inspection.state),
        "schema_version": inspection.version,
        "ledger": ledger,
        "min_reader": inspection.min_reader,
        "min_writer": inspection.min_writer,
        "format": FORMAT,
    }
    outcome = _judge_origin(inspection, subject.path, [name for name in ledger if name not in known_migrations()])
    return CheckResult(outcome.status, outcome.summary, outcome.remedy, details)


def _judge_origin(inspection: Inspection, path: Path, unknown: list[str]) -> CheckResult:
    version = f"schema {inspection.version}"
    if inspection.min_reader > FORMAT:
        return error("a newer version of Hermes made it, and this one cannot read it", "update Hermes")
    if inspection.min_writer > FORMAT:
        return error("a newer version of Hermes made it, and this one can only read it", "update Hermes")
    foreign = inspection.foreign
    if foreign.unsafe or (foreign.rules and inspection.state is not SchemaState.UPSTREAM):
        rules = "; ".join(dict.fromkeys((*foreign.rules, *foreign.unsafe)))
        return error(f"it is not opened, because another program has changed its tables: {rules}", REPAIR_HINT)
    if inspection.is_newer and foreign.triggers:
        return error(f"it has triggers of a newer Hermes, or of another program: {foreign.describe()}", "update Hermes")
    if foreign.removable and inspection.state is SchemaState.OURS:
        return warning(f"it has unused definitions that are not Hermes's: {foreign.describe()}", DONE_ON_OPEN)
    match inspection.state:
        case SchemaState.FRESH:
            return ok("it has no tables yet")
        case SchemaState.CURRENT if unknown:
            return note(
                f"{version}, with additions of a newer version: {', '.join(unknown)}", "update Hermes when you can"
            )
        case SchemaState.CURRENT:
            return ok(f"{version}, ours")
        case SchemaState.OURS:
            return note(f"{version}, ours, but not up to date", DONE_ON_OPEN)
        case SchemaState.OLD:
            return note(f"{version}, older than this program; it is upgraded after a copy is made", DONE_ON_OPEN)
        case SchemaState.UPSTREAM:
            return warning(
                f"{version} of another program: it can only be read, not written",
                schema.import_hint(path),
            )


def is_ours(subject: Subject, view: View) -> bool:
    """Whether the other checks know the tables."""
    inspection = schema.inspect_view(view, subject.path)
    return inspection.state in (SchemaState.CURRENT, SchemaState.OURS) and inspection.min_reader <= FORMAT


def fix_hint(subject: Subject, view: View) -> str:
    """The hint for counters and indexes that contradict the messages; `repair` expects an upgraded file."""
    state = schema.inspect_view(view, subject.path).state
    if state is SchemaState.UPSTREAM:
        return f"repair it with its own program; {schema.import_hint(subject.path)}"
    first = "" if state is SchemaState.CURRENT else "`hermes sessions optimize --no-vacuum`, then "
    return f"{first}`hermes sessions repair` fixes it, and keeps a copy of the file as it is now"


def salvage_hint(subject: Subject, view: View) -> str:
    """The hint for saving the rows of a damaged file."""
    if schema.inspect_view(view, subject.path).state is SchemaState.UPSTREAM:
        return fix_hint(subject, view)
    return f"keep it and all files next to it; {REPAIR_HINT}"


def permissions(subject: Subject) -> CheckResult:
    """Whether the current user owns the file, and only its owner may read it."""
    if os.name != "posix":
        return note("this system has no file modes")
    files = [beside(subject.file, suffix) for suffix in FILES]
    status = {file: file.stat() for file in files if file.exists()}
    modes = {str(file): f"{stat.S_IMODE(each.st_mode):04o}" for file, each in status.items()}
    of_others = [file for file, each in status.items() if each.st_uid != os.geteuid()] if os.geteuid() else []
    if of_others:
        return warning(
            f"{_names(of_others)}: owned by another user, so this program cannot write",
            f"as that user or as root: {_command('chown', f'{os.geteuid()}', *of_others)}",
            modes=modes,
        )
    open_files = [file for file, each in status.items() if each.st_mode & OTHERS]
    if open_files:
        return warning(
            f"others may read or write {_names(open_files)}", _command("chmod", "600", *open_files), modes=modes
        )
    return ok("only you may read it" if status else "there is nothing to read yet", modes=modes)


def file_system(subject: Subject) -> CheckResult:
    """The file system that the file is on."""
    found = file_system_of(subject.file)
    details = {"kind": found.kind, "mount_point": found.point, "shared": found.is_shared}
    if not found.kind:
        return note("the system does not say which file system it is on", **details)
    if found.is_shared:
        return note(
            f"on {found.kind} ({found.point}), which other machines or a host may write to: no write-ahead log there",
            "a local disk is faster and safer: set sessiondb.path or HERMES_HOME to a place on one",
            **details,
        )
    return ok(f"on {found.kind} ({found.point})", **details)


def journal(subject: Subject, view: View) -> CheckResult:
    """Whether the journal mode fits the file system."""
    has_log = uses_log(view)
    is_shared = file_system_of(subject.file).is_shared
    details = {"mode": "wal" if has_log else "rollback", "fits": has_log != is_shared}
    if has_log and bytes_of(beside(subject.file, LOG)) and view.value("PRAGMA journal_mode") != "wal":
        return warning(
            "its log cannot be read from here, so messages that are only in the log were not checked",
            f"run this as a user who may write to {subject.file.parent}",
            **details,
        )
    if has_log and is_shared:
        return error(
            "it has a write-ahead log on a file system that cannot share memory",
            "end all programs that have it open; the next one that opens it for writing switches the log off",
            **details,
        )
    if is_shared:
        return ok("without a write-ahead log, as its file system requires", **details)
    if not has_log:
        return note("without a write-ahead log, so readers and writers wait for each other", DONE_ON_OPEN, **details)
    return ok("with a write-ahead log", **details)


def uses_log(view: View) -> bool:
    """Whether the header of a file says that it has a write-ahead log."""
    _, mode = view.connection.read("main", 0, _HEADER_MODE, 1)
    return mode[0] == _WAL


def _is_ours(view: View) -> bool:
    return view.value("SELECT 1 FROM sqlite_schema WHERE name = 'hermes_ledger' AND type = 'table'") is not None


def _names(files: list[Path]) -> str:
    return ", ".join(file.name for file in files)


def _command(*words: str | Path) -> str:
    return shlex.join(map(str, words))
