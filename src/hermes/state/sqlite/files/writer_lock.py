"""The fair lock between processes that write one database.

Two lock files form a turnstile: a writer takes the gate, then the lock, then leaves the gate. A writer that releases
the lock must queue at the gate again, so no process gets the lock twice in a row while another waits. The kernel frees
both when a process dies.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hermes.errors import StoreError, StoreReadOnly, StoreUnavailable
from hermes.home import open_plain_file

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: SQLite's own lock with retries does the work alone
    fcntl = None  # type: ignore[assignment]
else:
    # Every write needs these four times.
    _flock, _TRY, _UNLOCK = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN


class WriterLock:
    """An advisory lock next to a database file; two threads must not use one object at once."""

    def __init__(self, database: Path) -> None:
        self._paths = (Path(f"{database}.gate"), Path(f"{database}.lock"))
        self._shared_memory = Path(f"{database}-shm")
        self._database = database
        self._fds: tuple[int, int] | None = None
        self._at_gate = False

    def open_lock_files(self) -> None:
        """Open the lock files; by this, other processes see that this one takes the writer lock."""
        # A process without the right to write gets the error when it writes.
        with contextlib.suppress(StoreError):
            if fcntl is not None:
                self._open()

    def try_acquire(self) -> bool:
        """Take the lock if no process has it or waits for it."""
        if fcntl is None:  # pragma: no cover
            return True
        gate, lock = self._fds or self._open()
        try:
            if not self._at_gate:
                _flock(gate, _TRY)
                self._at_gate = True
            _flock(lock, _TRY)
        except BlockingIOError:
            return False
        _flock(gate, _UNLOCK)
        self._at_gate = False
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

    def is_contended(self) -> bool:
        """Whether another process waits for the lock that this one holds."""
        if fcntl is None or self._fds is None:
            return False
        try:
            fcntl.flock(self._fds[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._fds[0], fcntl.LOCK_UN)
        return False

    def release(self) -> None:
        """Release the lock, so that the next writer gets it."""
        if fcntl is not None and self._fds is not None:
            _flock(self._fds[1], _UNLOCK)

    def release_gate_and_lock(self) -> None:
        """Release the gate and the lock, if they are held."""
        if fcntl is not None and self._fds is not None:
            self._leave_gate()
            self.release()

    def close(self) -> None:
        """Close the descriptors, which also releases the locks."""
        if self._fds is not None:
            for fd in self._fds:
                os.close(fd)
        self._fds = None
        self._at_gate = False

    def holder(self) -> str:
        """The other process that is writing now, as text for the user."""
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
                f"{path} cannot be opened: {exc.strerror}", hint="remove it if it is not an empty file"
            ) from exc
        self._give_to_owner(fd)
        return fd

    def _give_to_owner(self, fd: int) -> None:
        """Make the owner of the database the owner of a lock file that root created, as SQLite does with its files."""
        status = os.fstat(fd)
        # Only such a file: one with content or a second name is not a lock file.
        if os.geteuid() == 0 and status.st_uid == 0 and status.st_size == 0 and status.st_nlink == 1:
            owner = self._database.stat()
            os.fchown(fd, owner.st_uid, owner.st_gid)

    def _leave_gate(self) -> None:
        assert self._fds is not None
        fcntl.flock(self._fds[0], fcntl.LOCK_UN)
        self._at_gate = False


def _describe_holder(paths: list[Path]) -> str:
    """`pid 4242, hermes gateway` if the system lists a lock of another process, else an empty string."""
    inodes = []
    for path in paths:
        with contextlib.suppress(OSError):
            inodes.append(str(path.stat().st_ino))
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if "->" in fields:  # a waiting process
                continue
            kind, pid, inode = fields[3], int(fields[4]), fields[5].rpartition(":")[2]
            if kind == "WRITE" and inode in inodes and pid not in (os.getpid(), -1):
                from hermes.state.sqlite.files.open_by import command_of  # late: only this message needs it

                command = command_of(pid)
                return f"pid {pid}, {command}" if command else f"pid {pid}"
    return ""
