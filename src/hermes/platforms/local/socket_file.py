"""The socket in the Hermes home: one process listens on it, and another one takes it over when that process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from hermes.home import ensure_private_dir, open_plain_file

SOCKET_NAME = "gateway.sock"
LOCK_NAME = "gateway.sock.lock"
BACKLOG = 1024
"""Connections that may wait until the event loop accepts them; further ones fail for clients that do not wait."""
_NEW_NAME = "gateway.sock.new"
_MAX_PATH_BYTES = 100
"""Operating systems allow 104 to 108 bytes for the path of a socket."""


class SocketInUse(Exception):
    """Another process listens on the socket."""


class SocketFile:
    """The socket of a home, and the lock that belongs to its listener."""

    def __init__(self, home: Path, name: str = "") -> None:
        """Remember the home; `name` is what other processes say about this one, such as the name of its node."""
        self.path = home / SOCKET_NAME
        self._name = name
        self._lock: int | None = None
        self._inode: int | None = None

    def listen(self) -> socket.socket:
        """Return a listening socket; raise `SocketInUse` while another process has it.

        The socket of a dead process is replaced. A new one is complete (0600, listening) when it gets its name.
        """
        home = self.path.parent
        ensure_private_dir(home)
        lock = open_plain_file(home / LOCK_NAME, os.O_RDWR | os.O_CREAT)
        try:
            self._take(lock)
            listener = self._bind(home / _NEW_NAME)
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock
        return listener

    def remove(self) -> None:
        """Delete the socket, if it is still the one of this process, and let others have it."""
        if self._lock is None:
            return
        with contextlib.suppress(OSError):  # it may have been deleted, or the home may be away
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()
        os.close(self._lock)
        self._lock = self._inode = None

    def is_present(self) -> bool:
        """Whether the socket that this process listens on still has its name."""
        try:
            return self._inode is not None and self.path.lstat().st_ino == self._inode
        except OSError:
            return False

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(lock, 200, 0).decode("utf-8", "replace").strip()
            raise SocketInUse(holder or "another process") from None
        if _is_alive(self.path):
            raise SocketInUse("another process")
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{self._name or 'gateway'} (pid {os.getpid()})\n".encode(), 0)

    def _bind(self, draft: Path) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            draft.unlink(missing_ok=True)
            with address_of(draft) as address:
                listener.bind(address)
            os.chmod(draft, 0o600)
            listener.listen(BACKLOG)
            listener.setblocking(False)
            self._inode = draft.lstat().st_ino
            os.rename(draft, self.path)
        except BaseException:
            listener.close()
            draft.unlink(missing_ok=True)
            raise
        return listener


@contextlib.contextmanager
def address_of(path: Path) -> Iterator[str]:
    """Yield a short address of a socket, also if its path is longer than an address may be."""
    if len(os.fsencode(path)) <= _MAX_PATH_BYTES or not os.path.isdir("/proc/self/fd"):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _is_alive(path: Path) -> bool:
    """Whether a process listens on the socket at a path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            with address_of(path) as address:
                probe.connect(address)
        except BlockingIOError:
            return True  # its queue of connections is full
        except OSError:
            return False
    return True
