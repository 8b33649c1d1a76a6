"""A lock file: lets one process at a time change the file next to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.errors import StoreBusy
from hermes.home import private_opener

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: no lock between processes
    fcntl = None  # type: ignore[assignment]

TIMEOUT_S = 5.0

_POLL_S = 0.01


@contextmanager
def hold_lock(path: Path, timeout_s: float = TIMEOUT_S) -> Iterator[None]:
    """Hold the lock file `path`, created if missing and never deleted; the kernel releases it when a process dies."""
    fd = private_opener(str(path), os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0))
    try:
        _acquire(fd, path, time.monotonic() + timeout_s)
        yield
    finally:
        os.close(fd)


def _acquire(fd: int, path: Path, deadline: float) -> None:
    if fcntl is None:  # pragma: no cover
        return
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreBusy(
                    f"another process has held {path} for too long", hint="nothing was written; try again"
                ) from None
        time.sleep(_POLL_S)
