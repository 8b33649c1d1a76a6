"""Which processes have a database open."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import NamedTuple

from hermes.errors import StoreBusy
from hermes.state.sqlite.files.names import beside

_PROCESSES = Path("/proc")
_flags = re.compile(r"^flags:\s*([0-7]+)$", re.MULTILINE)


class Holder(NamedTuple):
    """A process that has a database open."""

    pid: int
    command: str
    keeps_the_rules: bool
    """Whether it only reads, or also has the lock file open: then it notices when the file is replaced."""


def holders_of(database: Path) -> list[Holder] | None:
    """The other processes that have a database open; None if the system does not say."""
    if not (_PROCESSES / "self" / "fd").is_dir():
        return None
    wanted, rules = _identity(database), _identity(beside(database, ".lock"))
    found = []
    for process in _PROCESSES.iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        open_files = _files_open_in(process)
        if wanted in open_files:
            keeps_the_rules = rules in open_files or not open_files[wanted]
            found.append(Holder(int(process.name), command_of(int(process.name)), keeps_the_rules))
    return sorted(found)


def refuse_foreign_programs(database: Path) -> None:
    """Raise if another program has a database open and would keep writing to the old file after a replacement."""
    strangers = [each for each in holders_of(database) or () if not each.keeps_the_rules]
    if strangers:
        names = ", ".join(f"pid {each.pid} ({each.command})" for each in strangers)
        raise StoreBusy(
            f"{database} is open in another program, which would keep writing to the old file: {names}",
            hint="end that program and try again; nothing was changed",
        )


def command_of(pid: int) -> str:
    """The command line of a process, shortened; empty if it cannot be read."""
    with contextlib.suppress(OSError):
        command = (_PROCESSES / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return command[:60]
    return ""


def _files_open_in(process: Path) -> dict[tuple[int, int], bool]:
    """The open files of a process, and whether each is writable; empty if it has ended or belongs to another user."""
    open_files: dict[tuple[int, int], bool] = {}
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            if (identity := _identity(descriptor)) is not None:
                open_files[identity] = open_files.get(identity, False) or _can_write(
                    process / "fdinfo" / descriptor.name
                )
    return open_files


def _can_write(descriptor: Path) -> bool:
    with contextlib.suppress(OSError):
        flags = _flags.search(descriptor.read_text())
        return flags is None or int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return True


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
