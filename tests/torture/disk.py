"""A VFS that calls a fault function before each access of this process's SQLite to its files."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Literal, NamedTuple

import apsw

Action = Literal["write", "sync", "synced", "truncate", "delete"]
Target = Literal["database", "log", "other"]

SECTOR = 512
"""The number of bytes that a disk writes atomically."""


class Access(NamedTuple):
    """What SQLite is about to do to a file, or has just done when `action` is `synced`."""

    action: Action
    target: Target
    name: str
    offset: int = 0
    data: bytes = b""
    write: Callable[[bytes, int], None] = lambda data, offset: None
    """Writes to the file, for a fault that leaves a write half done."""


DiskFault = Callable[[Access], None]
"""Called before an access; it may raise an SQLite error or end the process."""


class _File(apsw.VFSFile):
    disk_fault: DiskFault

    def __init__(self, base: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._target: Target = _target(flags[0])
        plain = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = os.path.basename(plain or "")
        super().__init__(base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk_fault(Access("write", self._target, self._name, offset, bytes(data), super().xWrite))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self.disk_fault(Access("sync", self._target, self._name))
        super().xSync(flags)
        self.disk_fault(Access("synced", self._target, self._name))

    def xTruncate(self, newsize: int) -> None:
        self.disk_fault(Access("truncate", self._target, self._name, newsize))
        super().xTruncate(newsize)

    def xLock(self, level: int) -> None:
        try:
            super().xLock(level)
        except apsw.IOError:
            # A reader that closes requests a lock that its descriptor cannot have; SQLite ignores that, apsw raises.
            raise apsw.exception_for(apsw.SQLITE_BUSY) from None

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: TracebackType | None
    ) -> bool:
        """Print nothing: the fault is intended, and the caller gets the error."""
        return True


class Disk(apsw.VFS):
    """The default VFS with a fault function before each access; becomes the default of this process."""

    def __init__(self, disk_fault: DiskFault) -> None:
        self._base = apsw.vfs_names()[0]
        self._disk_fault = disk_fault
        self._file = type("File", (_File,), {"disk_fault": staticmethod(disk_fault)})
        super().__init__("faults", self._base, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file whose accesses call the fault function."""
        file: apsw.VFSFile = self._file(self._base, name, flags)
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Call the fault function, then remove a file."""
        self._disk_fault(Access("delete", "other", os.path.basename(filename)))
        super().xDelete(filename, syncdir)


class Countdown:
    """Calls `then` once, at the `left`-th access to one kind of file or to any file."""

    def __init__(self, left: int, then: DiskFault, target: Target | None = None) -> None:
        self.left = left
        self._then = then
        self._target = target

    def __call__(self, access: Access) -> None:
        if self._target in (access.target, None):
            self.left -= 1
            if self.left == 0:
                self._then(access)


def die(access: Access) -> None:
    """Kill this process in the middle of a write."""
    if access.action == "write":
        access.write(access.data[:SECTOR], access.offset)
    os.kill(os.getpid(), signal.SIGKILL)


def _target(flags: int) -> Target:
    if flags & apsw.SQLITE_OPEN_MAIN_DB:
        return "database"
    return "log" if flags & apsw.SQLITE_OPEN_WAL else "other"
