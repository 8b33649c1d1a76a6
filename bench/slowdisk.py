"""A disk on which every fsync is slow, as a VFS for the SQLite of this process."""

from __future__ import annotations

import time

import apsw


class _SlowFile(apsw.VFSFile):
    seconds = 0.0

    def xSync(self, flags: int) -> None:
        time.sleep(self.seconds)
        super().xSync(flags)


class SlowDisk(apsw.VFS):
    """The default VFS, with a sleep before each fsync."""

    def __init__(self, fsync_ms: float) -> None:
        self._base = apsw.vfs_names()[0]
        self._file = type("SlowFile", (_SlowFile,), {"seconds": fsync_ms / 1000})
        super().__init__("slowdisk", self._base, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file whose xSync sleeps first."""
        file: apsw.VFSFile = self._file(self._base, name, flags)
        return file
