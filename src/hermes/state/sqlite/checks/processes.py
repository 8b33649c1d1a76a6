"""Use: which processes have the file open, which ones write or read, and which sessions are locked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hermes.state.maintenance import shared_checks
from hermes.state.maintenance.findings import CheckResult, error, not_checked, note, ok, warning
from hermes.state.sqlite.checks.subject import Subject
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.files.names import LOG, SHARED_MEMORY, beside
from hermes.state.sqlite.files.open_by import command_of, holders_of
from hermes.state.sqlite.files.writer_lock import WriterLock

MANY_HANDLES = 64
"""More open descriptors than this on one file are a leak: a store needs one to write and a few to read."""

_PROCESSES, _LOCKS = Path("/proc"), Path("/proc/locks")
_REMOVED = " (deleted)"
_READ_MARKS = range(123, 128)
"""The bytes of the shared memory that a reader of a log locks."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that uses the file."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.command})" if self.command else f"pid {self.pid}"


@dataclass(frozen=True, slots=True)
class User(Process):
    """A process that has the file open."""

    keeps_the_rules: bool
    writes: bool
    handles: int

    __str__ = Process.__str__


def holders(subject: Subject) -> CheckResult:
    """Which processes have the file open, and whether all of them take the writer lock."""
    found = holders_of(subject.file)
    if found is None:
        return not_checked("the system does not say which processes have it open")
    users = [User(*each, *_count_handles(each.pid, subject.file)) for each in found]
    details = {"processes": [asdict(each) for each in users]}
    strangers = [each for each in users if each.writes and not each.keeps_the_rules]
    if strangers:
        return warning(
            f"{describe(strangers)} has it open for writing without Hermes's writer lock",
            "end it, or let it only read: it blocks other writers, and after a repair it keeps writing to the old file",
            **details,
        )
    leaking = [each for each in users if each.handles > MANY_HANDLES]
    if leaking:
        return warning(
            f"{describe(leaking)} has it open {max(each.handles for each in leaking)} times",
            "restart it: it leaks file descriptors, and fails when it reaches its limit",
            **details,
        )
    return ok(f"open in {describe(users)}" if users else "no other process has it open", **details)


def writer(subject: Subject) -> CheckResult:
    """Which process is writing now."""
    if not _LOCKS.exists():
        return not_checked("the system does not say which process is writing")
    holder = WriterLock(subject.file).holder()
    return ok(f"{holder} is writing" if holder else "no process is writing", holder=holder)


def readers(subject: Subject) -> CheckResult:
    """Which processes are reading now, and so keep the log from being emptied."""
    found = reading_now(subject.file)
    if found is None:
        return not_checked("the system does not say which processes are reading")
    summary = f"{describe(found)} is reading" if found else "no other process is reading"
    return ok(summary, processes=[asdict(each) for each in found])


def left_behind(subject: Subject) -> CheckResult:
    """Which processes still use a file or a log that was removed or replaced."""
    if not _PROCESSES.is_dir():
        return not_checked("the system does not say which files processes have open")
    file, log = (f"{subject.file}{suffix}{_REMOVED}" for suffix in ("", LOG))
    lock = str(beside(subject.file, ".lock"))
    lost, late = [], []
    for pid in _pids():
        names = {name for _, name in _open_files(pid)}
        # A process of Hermes checks before each read or write whether the file is still the one at its path.
        if file in names and lock in names:
            late.append(Process(pid, command_of(pid)))
        elif file in names or log in names:
            lost.append(Process(pid, command_of(pid)))
    details = {"lost": [asdict(each) for each in lost], "late": [asdict(each) for each in late]}
    if lost:
        return error(
            f"{describe(lost)} has a file open that was removed or replaced: no other process sees what it stores",
            "restart it, and check whether the messages it stored last are there",
            **details,
        )
    if late:
        return note(
            f"{describe(late)} has not noticed yet that the file was replaced", "it notices at its next use", **details
        )
    return ok("no process has a removed or replaced file open", **details)


def leases(subject: Subject, view: View) -> CheckResult:
    """Which sessions are being compressed."""
    return shared_checks.check_compression_locks(view, subject.now)


def reading_now(file: Path) -> list[Process] | None:
    """The other processes that are reading a file with a log; None if the system does not say."""
    try:
        lines = _LOCKS.read_text().splitlines()
        memory = str(beside(file, SHARED_MEMORY).stat().st_ino)
    except FileNotFoundError:
        return [] if _LOCKS.exists() else None
    except OSError:
        return None
    pids = {int(fields[4]) for fields in map(str.split, lines) if _is_read_mark(fields, memory)}
    return [Process(pid, command_of(pid)) for pid in sorted(pids) if pid > 0 and pid != os.getpid()]


def describe(processes: Iterable[Process]) -> str:
    """The pids and commands of processes, separated by commas."""
    return ", ".join(map(str, processes))


def _is_read_mark(fields: list[str], inode: str) -> bool:
    if len(fields) != 8 or fields[3] != "READ" or fields[5].rpartition(":")[2] != inode:
        return False
    return fields[6].isdecimal() and int(fields[6]) in _READ_MARKS


def _count_handles(pid: int, file: Path) -> tuple[bool, int]:
    """Whether a process can write to a file, and how many descriptors of it it has."""
    wanted = file.stat()
    writes, handles = False, 0
    for descriptor, _ in _open_files(pid):
        with suppress(OSError):
            if os.path.samestat(descriptor.stat(), wanted):
                handles += 1
                writes = writes or _is_for_writing(descriptor)
    return writes, handles


def _is_for_writing(descriptor: Path) -> bool:
    info = (descriptor.parents[1] / "fdinfo" / descriptor.name).read_text()
    flags = next(line.split()[1] for line in info.splitlines() if line.startswith("flags:"))
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def _pids() -> Iterator[int]:
    for process in _PROCESSES.iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            yield int(process.name)


def _open_files(pid: int) -> Iterator[tuple[Path, str]]:
    """The descriptors of a process with their paths; empty if it has ended or belongs to another user."""
    with suppress(OSError):
        for descriptor in (_PROCESSES / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield descriptor, os.readlink(descriptor)
