"""Copying a file byte by byte, also from a disk that cannot read all of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from hermes.home import private_opener
from hermes.state.engine import Report
from hermes.state.messages.spool import write_all

CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 4_096

Read = Callable[[int, int, int], bytes]
"""Reads this many bytes of an open file from an offset, as `os.pread` does."""


def copy_bytes(source: Path, target: Path, report: Report | None = None, *, read: Read = os.pread) -> int:
    """Copy `source` to `target` and sync it; return how many bytes could not be read.

    Unreadable bytes are zero in the copy. This process must not have the source open.
    """
    unreadable, done = 0, 0
    source_fd = os.open(source, os.O_RDONLY)
    try:
        target_fd = private_opener(str(target), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            total = os.fstat(source_fd).st_size
            while data := _read(read, source_fd, done, min(CHUNK_BYTES, total - done)):
                unreadable += data[1]
                write_all(target_fd, data[0])
                done += len(data[0])
                if report is not None:
                    report("copying", done, total)
            os.fsync(target_fd)
        finally:
            os.close(target_fd)
    finally:
        os.close(source_fd)
    return unreadable


def _read(read: Read, file: int, at: int, size: int) -> tuple[bytes, int] | None:
    """Read some bytes; return them, and how many are zero because they cannot be read; None at the end."""
    if size <= 0:
        return None
    try:
        data = read(file, size, at)
        return (data, 0) if data else None
    except OSError as exc:
        if exc.errno != errno.EIO:
            raise
    if size > BLOCK_BYTES:
        return _read(read, file, at, BLOCK_BYTES)
    return b"\0" * size, size
