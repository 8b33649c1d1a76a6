"""Which processes have a database open."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from hermes.state.sqlite.files import beside

_PROCESSES = Path("/proc")


class Holder(NamedTuple):
    """A process that has a database open."""

    pid: int
    command: str
    keeps_the_rules: bool
    """Whether it also has the lock file open, so it waits for its turn and notices when the file is replaced."""


def holders_of(database: Path) -> list[Holder] | None:
    """The other processes that have a database open; None if the system does not say."""
    if not (_PROCESSES / "self" / "fd").is_dir():
        return None
    wanted, rules = _identity(database), _identity(beside(database, ".lock"))
    found = []
    for process in _PROCESSES.iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        opened = _opened_by(process)
        if wanted in opened:
            found.append(Holder(int(process.name), command_of(int(process.name)), rules in opened))
    return sorted(found)


def command_of(pid: int) -> str:
    """The command line of a process, shortened; empty if it is not to be seen."""
    with contextlib.suppress(OSError):
        said = (_PROCESSES / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return said[:60]
    return ""


def _opened_by(process: Path) -> set[tuple[int, int] | None]:
    """What a process has open; nothing if it has ended or belongs to somebody else."""
    opened: set[tuple[int, int] | None] = set()
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            opened.add(_identity(descriptor))
    return opened - {None}


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
