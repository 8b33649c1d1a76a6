"""Copying a file byte by byte, also from a disk that does not give all of them any more."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from hermes.home import private_opener
from hermes.state.engine import Report

CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 4_096

Read = Callable[[int, int, int], bytes]
"""Reads so many bytes of an open file from an offset on, as `os.pread` does."""


def copy_bytes(source: Path, target: Path, report: Report | None = None, *, read: Read = os.pread) -> int:
    """Make `target`, on disk when this returns, what `source` is; answers how many bytes could not be read.

    Those are zero in the copy. Nobody else in this process may have the source open.
    """
    unreadable, done = 0, 0
    given = os.open(source, os.O_RDONLY)
    try:
        taken = private_opener(str(target), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            total = os.fstat(given).st_size
            while data := _read(read, given, done, min(CHUNK_BYTES, total - done)):
                unreadable += data[1]
                _write_all(taken, data[0])
                done += len(data[0])
                if report is not None:
                    report("copying", done, total)
            os.fsync(taken)
        finally:
            os.close(taken)
    finally:
        os.close(given)
    return unreadable


def _read(read: Read, file: int, at: int, size: int) -> tuple[bytes, int] | None:
    """Some bytes, and how many of them are zero because they cannot be read; None at the end."""
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


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
