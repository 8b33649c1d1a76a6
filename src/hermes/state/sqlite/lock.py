"""The fair lock between processes that write one database.

Two lock files form a turnstile: a writer takes the gate, then the lock, then leaves the gate. Whoever releases the lock
must queue at the gate again, so nobody barges in twice in a row. The kernel frees both when a process dies.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: SQLite's own lock with retries does the work alone
    fcntl = None  # type: ignore[assignment]


class WriterLock:
    """An advisory lock beside a database file; not for use by two threads at once."""

    def __init__(self, database: Path) -> None:
        self._paths = (Path(f"{database}.gate"), Path(f"{database}.lock"))
        self._fds: tuple[int, int] | None = None
        self._at_gate = False

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

    def close(self) -> None:
        """Drop the descriptors, and with the last of them any lock.

        After a fork the child calls this too: closing leaves the parent's lock alone, unlocking would free it.
        """
        if self._fds is not None:
            for fd in self._fds:
                os.close(fd)
        self._fds = None
        self._at_gate = False

    def holder(self) -> str:
        """Who has the lock now, for a message to a person."""
        return _describe_holder(self._paths[1])

    def _open(self) -> tuple[int, int]:
        if self._fds is None:
            gate, lock = (os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for path in self._paths)
            self._fds = (gate, lock)
        return self._fds

    def _leave_gate(self) -> None:
        assert self._fds is not None
        fcntl.flock(self._fds[0], fcntl.LOCK_UN)
        self._at_gate = False


def _describe_holder(path: Path) -> str:
    """`pid 4242, hermes gateway` where the system tells, else an empty string."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        wanted = str(path.stat().st_ino)
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == wanted:
                return _describe_process(int(fields[4]))
    return ""


def _describe_process(pid: int) -> str:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return f"pid {pid}, {command[:60]}"
    return f"pid {pid}"
