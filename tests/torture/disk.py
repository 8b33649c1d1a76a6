"""A disk on which something happens at a chosen moment, as a VFS for the SQLite of this process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Literal, NamedTuple

import apsw

Deed = Literal["write", "sync", "synced", "truncate", "delete"]
Target = Literal["database", "log", "other"]

SECTOR = 512
"""What a disk writes as a whole, whatever SQLite thinks."""


class Access(NamedTuple):
    """What SQLite is about to do to a file, or, when it is synced, has just done."""

    deed: Deed
    target: Target
    name: str
    offset: int = 0
    data: bytes = b""
    write: Callable[[bytes, int], None] = lambda data, offset: None
    """Writes to the file, for a mishap that leaves half of it done."""


Mishap = Callable[[Access], None]
"""What happens before an access; it may raise an error of SQLite, or end the process."""


class _File(apsw.VFSFile):
    mishap: Mishap

    def __init__(self, base: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._target: Target = _target(flags[0])
        plain = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = os.path.basename(plain or "")
        super().__init__(base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.mishap(Access("write", self._target, self._name, offset, bytes(data), super().xWrite))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self.mishap(Access("sync", self._target, self._name))
        super().xSync(flags)
        self.mishap(Access("synced", self._target, self._name))

    def xTruncate(self, newsize: int) -> None:
        self.mishap(Access("truncate", self._target, self._name, newsize))
        super().xTruncate(newsize)

    def xLock(self, level: int) -> None:
        try:
            super().xLock(level)
        except apsw.IOError:
            # A reader that closes tries for a lock that its descriptor cannot have; SQLite does not mind, apsw would.
            raise apsw.exception_for(apsw.SQLITE_BUSY) from None

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: TracebackType | None
    ) -> bool:
        """Keep quiet: a mishap is meant, and its caller hears of it."""
        return True


class Disk(apsw.VFS):
    """The default VFS with a mishap before each access; from now on the default of this process."""

    def __init__(self, mishap: Mishap) -> None:
        self._base = apsw.vfs_names()[0]
        self._mishap = mishap
        self._file = type("File", (_File,), {"mishap": staticmethod(mishap)})
        super().__init__("mishaps", self._base, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file to which the mishap can happen."""
        file: apsw.VFSFile = self._file(self._base, name, flags)
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Remove a file, which the mishap hears of first."""
        self._mishap(Access("delete", "other", os.path.basename(filename)))
        super().xDelete(filename, syncdir)


class Countdown:
    """Lets so many accesses pass, to one kind of file or to all, then does something, once."""

    def __init__(self, left: int, then: Mishap, target: Target | None = None) -> None:
        self.left = left
        self._then = then
        self._target = target

    def __call__(self, access: Access) -> None:
        if self._target in (access.target, None):
            self.left -= 1
            if self.left == 0:
                self._then(access)


def die(access: Access) -> None:
    """End this process at once, with what it was writing half written."""
    if access.deed == "write":
        access.write(access.data[:SECTOR], access.offset)
    os.kill(os.getpid(), signal.SIGKILL)


def _target(flags: int) -> Target:
    if flags & apsw.SQLITE_OPEN_MAIN_DB:
        return "database"
    return "log" if flags & apsw.SQLITE_OPEN_WAL else "other"
