"""Mounts a small file system, where the system allows it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NEW_NAMESPACE = 0x0002_0000
_PRIVATE = 0x0004_0000 | 0x4000
"""Only this process and its children see the mount."""
_DETACH = 2


@contextmanager
def small_disk(directory: Path, size: int) -> Iterator[str]:
    """Mount a file system of `size` bytes on a directory; yield why it cannot be done, or an empty string."""
    if sys.platform != "linux":
        yield "only Linux has mounts that one process sees alone"
        return
    libc = ctypes.CDLL(None, use_errno=True)
    where = os.fsencode(directory)
    is_mounted = (
        libc.unshare(_NEW_NAMESPACE) == 0
        and libc.mount(b"none", b"/", None, _PRIVATE, None) == 0
        and libc.mount(b"tmpfs", where, b"tmpfs", 0, f"size={size}".encode()) == 0
    )
    if not is_mounted:
        yield f"no file system could be mounted: {os.strerror(ctypes.get_errno())}"
        return
    try:
        yield ""
    finally:
        libc.umount2(where, _DETACH)
