"""Leftovers: spooled messages, kept copies of the file, and files that a crash left."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hermes.phrases import format_size, join_some, plural
from hermes.state.maintenance import shared_checks
from hermes.state.maintenance.findings import CheckResult, note, ok
from hermes.state.messages.spool import Spool
from hermes.state.sqlite.checks.subject import Subject
from hermes.state.sqlite.files.names import beside, bytes_of


@dataclass(frozen=True, slots=True)
class LeftoverFiles:
    """A kind of file that stays next to a database, and when it may be removed."""

    begins: str
    ends: str
    removable: str


LEFTOVERS = {
    "unfinished copies": LeftoverFiles(".", ".partial", "unless a backup, a restore or an upgrade is running"),
    "logs of replaced files": LeftoverFiles(
        ".left-", "-wal", "when no message from just before the replacement is missing"
    ),
    "damaged files": LeftoverFiles(".damaged-", "", "when nothing is missing after the repair"),
    "repaired files": LeftoverFiles(".repaired-", "", "unless a repair is running"),
    "replaced files": LeftoverFiles(".replaced-", "", "when nothing is missing after the restore"),
    "copies from before an upgrade": LeftoverFiles(".pre-", "", "when nothing is missing after the upgrade"),
}


def spool(subject: Subject) -> CheckResult:
    """How many messages are in the spool."""
    return shared_checks.check_spool(Spool(beside(subject.file, ".spool")), "the file")


def leftovers(subject: Subject) -> CheckResult:
    """The files next to the database that may be removed."""
    found: dict[str, list[Path]] = {}
    for file in _files_in(subject.file.parent):
        kind = _kind_of(file.name, subject.file.name)
        if kind is not None:
            found.setdefault(kind, []).append(file)
    if not found:
        return ok("no files next to it that could be removed", files={})
    size = sum(bytes_of(file) for files in found.values() for file in files)
    names = [file.name for files in found.values() for file in files]
    return note(
        f"{format_size(size)} in kept or leftover files: {join_some(names)}",
        "; ".join(f"{kind} may be removed {LEFTOVERS[kind].removable}" for kind in found),
        bytes=size,
        files={kind: [str(file) for file in files] for kind, files in found.items()},
    )


def backups(subject: Subject) -> CheckResult:
    """How many backups exist, and how old the newest is."""
    files = [file for file in _files_in(subject.backups) if file.suffix == ".db"]
    details = {"directory": str(subject.backups), "files": len(files), "bytes": sum(map(bytes_of, files))}
    if not files and not bytes_of(subject.file):
        return ok("nothing is stored yet, so there is nothing to back up", **details, newest=None)
    if not files:
        return note(
            f"there is no backup in {subject.backups}", "`hermes sessions backup` makes one", **details, newest=None
        )
    newest = max(file.stat().st_mtime for file in files)
    days = max(0, int((subject.now - newest) // 86_400))
    age = f"{plural(days, 'day')} ago" if days else "less than a day ago"
    return ok(
        f"{plural(len(files), 'backup')} with {format_size(int(str(details['bytes'])))}, the newest made {age}",
        **details,
        newest=newest,
    )


def _files_in(directory: Path) -> list[Path]:
    """List the files of a directory, which may not exist yet."""
    try:
        return sorted(Path(each.path) for each in os.scandir(directory) if each.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _kind_of(name: str, database: str) -> str | None:
    if not name.startswith(database):
        return None
    rest = name.removeprefix(database)
    for kind, each in LEFTOVERS.items():
        if rest.startswith(each.begins) and rest.endswith(each.ends):
            return kind
    return None
