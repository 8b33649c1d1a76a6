"""The journal: what a store without its database has done, one JSON object a line, for the replay afterwards."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes.errors import ConfigError, InvalidValue
from hermes.home import ensure_private_dir, private_opener, sync_directory
from hermes.ids import new_caller_uid

FILENAME = "degraded.jsonl"

Record = dict[str, Any]
_NAME_BYTES = 48
"""A first line has as many: its id is what makes it different."""


class Journal:
    """A file of records that several processes may append to, one at a time."""

    def __init__(self, sessions_dir: Path) -> None:
        self.path = sessions_dir / FILENAME

    @contextmanager
    def locked(self) -> Iterator[LockedJournal]:
        """Hold the lock of the journal; the file is created if it does not exist."""
        fd = self._open_locked()
        try:
            yield LockedJournal(fd, self.path)
        finally:
            os.close(fd)  # this also releases the lock

    def _open_locked(self) -> int:
        while True:
            ensure_private_dir(self.path.parent)
            try:
                fd = private_opener(str(self.path), os.O_RDWR | os.O_CREAT)
            except IsADirectoryError:
                raise ConfigError(f"{self.path} should be a file, but it is a directory", hint="move it away") from None
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if _is_at(fd, self.path):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # another process has replayed and deleted this file


class LockedJournal:
    """The journal while this process holds its lock."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    @property
    def name(self) -> bytes:
        """The first bytes, which differ from journal to journal; empty for a journal without records."""
        return os.pread(self._fd, _NAME_BYTES, 0)

    def read(self, start: int = 0) -> tuple[list[Record], int]:
        """Return the records from a position on, and the position after them; an incomplete last line is not read."""
        size = os.fstat(self._fd).st_size
        data = os.pread(self._fd, max(0, size - start), start)
        end = data.rfind(b"\n") + 1
        return [_parse(line) for line in data[:end].splitlines()], start + end

    def append(self, record: Mapping[str, Any]) -> int:
        """Store a record durably, and return the position after it."""
        end = self._end_of_lines()
        try:
            line = json.dumps(record).encode() + b"\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidValue(f"it cannot be stored: {error}") from None
        if not end:  # the name of the journal tells it from later ones
            line = json.dumps({"kind": "journal", "id": new_caller_uid()}).encode() + b"\n" + line
        os.ftruncate(self._fd, end)  # a process that died may have left a part of a line
        written = 0
        while written < len(line):
            written += os.pwrite(self._fd, line[written:], end + written)
        os.fsync(self._fd)
        if not end:
            sync_directory(self._path.parent)
        return end + len(line)

    def delete(self) -> None:
        """Delete the journal, after its replay."""
        self._path.unlink(missing_ok=True)

    def delete_if_empty(self) -> None:
        """Delete a journal that opening has created."""
        if not self.name:
            self.delete()

    def _end_of_lines(self) -> int:
        """Return the position after the last complete line."""
        size = os.fstat(self._fd).st_size
        step = 65_536
        while size:
            start = max(0, size - step)
            found = os.pread(self._fd, size - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            size = start
        return 0


def _parse(line: bytes) -> Record:
    """Return a record; a damaged line is one, too, so that the others are still used."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if isinstance(record, dict) and isinstance(record.get("kind"), str):
        return record
    return {"kind": "damaged", "line": line.decode("utf-8", "replace")}


def _is_at(fd: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
