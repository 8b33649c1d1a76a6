"""The fair lock between processes that write one database.

Two lock files form a turnstile: a writer takes the gate, then the lock, then leaves the gate. Whoever releases the lock
must queue at the gate again, so nobody barges in twice in a row. The kernel frees both when a process dies.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hermes.errors import StoreError, StoreReadOnly, StoreUnavailable
from hermes.home import open_plain_file
from hermes.state.sqlite.files.open_by import command_of

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: SQLite's own lock with retries does the work alone
    fcntl = None  # type: ignore[assignment]


class WriterLock:
    """An advisory lock beside a database file; not for use by two threads at once."""

    def __init__(self, database: Path) -> None:
        self._paths = (Path(f"{database}.gate"), Path(f"{database}.lock"))
        self._shared_memory = Path(f"{database}-shm")
        self._database = database
        self._fds: tuple[int, int] | None = None
        self._at_gate = False

    def open_lock_files(self) -> None:
        """Have the lock files open, by which others see that this process waits for its turn."""
        # Whoever may not write finds that out when writing.
        with contextlib.suppress(StoreError):
            if fcntl is not None:
                self._open()

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it or waits for it."""
        if fcntl is None:  # pragma: no cover
            return True
        gate, lock = self._open()
        try:
            if not self._at_gate:
                fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._at_gate = True
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._leave_gate()
        return True

    def acquire(self) -> None:
        """Wait for the lock, in the order of arrival."""
        if fcntl is None:  # pragma: no cover
            return
        gate, lock = self._open()
        if not self._at_gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            self._at_gate = True
        fcntl.flock(lock, fcntl.LOCK_EX)
        self._leave_gate()

    def release(self) -> None:
        """Let the next one in."""
        if fcntl is not None and self._fds is not None:
            fcntl.flock(self._fds[1], fcntl.LOCK_UN)

    def release_gate_and_lock(self) -> None:
        """Leave the gate and the lock, whichever of them was reached."""
        if fcntl is not None and self._fds is not None:
            self._leave_gate()
            self.release()

    def close(self) -> None:
        """Drop the descriptors, and with them any lock."""
        if self._fds is not None:
            for fd in self._fds:
                os.close(fd)
        self._fds = None
        self._at_gate = False

    def holder(self) -> str:
        """Which other process writes now, for a message to a person."""
        return _describe_holder([self._paths[1], self._shared_memory])

    def _open(self) -> tuple[int, int]:
        if self._fds is None:
            gate = self._create(self._paths[0])
            try:
                self._fds = (gate, self._create(self._paths[1]))
            except BaseException:
                os.close(gate)
                raise
        return self._fds

    def _create(self, path: Path) -> int:
        try:
            fd = open_plain_file(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        except PermissionError as exc:
            raise StoreReadOnly(f"{path} cannot be written", hint="check who owns it and its directory") from exc
        except OSError as exc:
            raise StoreUnavailable(
                f"{path} cannot be opened: {exc.strerror}", hint="remove what lies there if it is no empty file"
            ) from exc
        self._give_to_owner(fd)
        return fd

    def _give_to_owner(self, fd: int) -> None:
        """Give a lock file that root made to the owner of the database, as SQLite does with its own files."""
        status = os.fstat(fd)
        # Nothing else is given away: a file with content or a second name is no lock file.
        if os.geteuid() == 0 and status.st_uid == 0 and status.st_size == 0 and status.st_nlink == 1:
            owner = self._database.stat()
            os.fchown(fd, owner.st_uid, owner.st_gid)

    def _leave_gate(self) -> None:
        assert self._fds is not None
        fcntl.flock(self._fds[0], fcntl.LOCK_UN)
        self._at_gate = False


def _describe_holder(paths: list[Path]) -> str:
    """`pid 4242, hermes gateway` where the system tells of a lock that another process has, else an empty string."""
    inodes = []
    for path in paths:
        with contextlib.suppress(OSError):
            inodes.append(str(path.stat().st_ino))
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if "->" in fields:  # one that waits
                continue
            kind, pid, inode = fields[3], int(fields[4]), fields[5].rpartition(":")[2]
            if kind == "WRITE" and inode in inodes and pid not in (os.getpid(), -1):
                command = command_of(pid)
                return f"pid {pid}, {command}" if command else f"pid {pid}"
    return ""
