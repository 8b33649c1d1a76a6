"""The spool: a file next to the database for messages that could not be stored.

It has one line of JSON for each message, on disk before the caller gets its error. Each message has a uid, so storing
it twice has no effect: after a crash at any moment, no message is lost or doubled.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from hermes.errors import ConfigError, NotADatabase, StoreCorrupt
from hermes.home import ensure_private_dir, open_plain_file, sync_directory
from hermes.log import warn
from hermes.state import json_text
from hermes.state.messages.drafts import Draft
from hermes.state.owner import EVERYBODY, Asker, owner_from_column
from hermes.state.rows import Stored

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: only one process at a time is supported
    fcntl = None  # type: ignore[assignment]


PERMANENT_FAILURES = (StoreCorrupt, NotADatabase)
"""Failures that do not end without a repair: new messages go to the spool until the store works again."""


class SpooledMessage(NamedTuple):
    """A message in the spool."""

    session_id: str
    draft: Draft
    asker: Asker
    """The sender: the message is stored only into a session of theirs."""


class Spool:
    """The file of spooled messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unreadable = Path(f"{path}.unreadable")
        """The file for lines that cannot be read or stored."""
        self.may_have_messages = not self.is_empty()
        """Whether the file had messages when it was opened, or this process has added some since."""

    def is_empty(self) -> bool:
        """Whether the spool has no messages."""
        return self.size == 0

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return _file_size(self.path)

    @property
    def unreadable_size(self) -> int:
        """The size of the file of unreadable lines, in bytes."""
        return _file_size(self.unreadable)

    def add(self, session_id: str, messages: Sequence[Draft], asker: Asker) -> None:
        """Write messages to the file; they are on disk when this returns. Raise OSError if that fails."""
        lines = "".join(_line(session_id, message, asker) for message in messages).encode()
        with contextlib.suppress(ConfigError):  # opening the file reports the problem
            ensure_private_dir(self.path.parent)
        with self._open_locked() as fd:
            if os.lseek(fd, 0, os.SEEK_END) and os.pread(fd, 1, os.lseek(fd, 0, os.SEEK_CUR) - 1) != b"\n":
                lines = b"\n" + lines  # another process died in the middle of a line
            write_all(fd, lines)
            os.fsync(fd)
        sync_directory(self.path.parent)
        self.may_have_messages = True

    def replay(self, store: Callable[[str, list[Draft], Asker], bool]) -> int:
        """Pass all messages to `store`, in order, and empty the file; return how many were stored.

        If `store` raises, the file stays unchanged. If it returns False, the messages move to the file of unreadable
        lines. If another process is replaying the spool, this does nothing.
        """
        self.may_have_messages = False
        if self.is_empty():
            return 0
        with self._open_locked(wait=False) as fd:
            if fd < 0:
                return 0
            kept, unreadable = _read(_read_all(fd))
            stored = 0
            try:
                for (session_id, asker), group in groupby(kept, key=lambda each: (each.session_id, each.asker)):
                    drafts = [each.draft for each in group]
                    if store(session_id, drafts, asker):
                        stored += len(drafts)
                    else:
                        unreadable += [_line(session_id, each, asker).rstrip("\n").encode() for each in drafts]
            except BaseException:
                self.may_have_messages = True
                raise
            if unreadable:
                self._move_to_unreadable(unreadable)
            os.ftruncate(fd, 0)
            os.fsync(fd)
            return stored

    def count(self) -> int:
        """Return the number of messages in the spool."""
        if self.is_empty():  # a pipe or a device too, which has no end
            return 0
        try:
            return len(_read(self.path.read_bytes())[0])
        except OSError:
            return 0

    def _move_to_unreadable(self, lines: list[bytes]) -> None:
        fd = open_plain_file(self.unreadable, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            write_all(fd, b"\n".join(lines) + b"\n")
            os.fsync(fd)
        finally:
            os.close(fd)
        warn(__name__, "%s lines of the spool could not be stored; they are in %s", len(lines), self.unreadable)

    @contextlib.contextmanager
    def _open_locked(self, *, wait: bool = True) -> Iterator[int]:
        """Open and lock the file while the block runs; yield -1 if `wait` is False and another process has the lock."""
        fd = open_plain_file(self.path, os.O_RDWR | os.O_CREAT)
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                except BlockingIOError:
                    yield -1
                    return
            yield fd
        finally:
            os.close(fd)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _line(session_id: str, message: Draft, asker: Asker) -> str:
    # A list marks text that is already in its stored form, because plain text may look the same.
    values = {name: [value] if isinstance(value, Stored) else value for name, value in message.values.items()}
    record: dict[str, Any] = {"session_id": session_id, "draft": [values, *message[1:]]}
    if asker is not EVERYBODY:
        record["owner"] = asker.stored
    return json_text.dumps_ascii(record) + "\n"


def _read(data: bytes) -> tuple[list[SpooledMessage], list[bytes]]:
    kept: list[SpooledMessage] = []
    unreadable: list[bytes] = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            kept.append(_parse(json_text.loads(line)))
        except (ValueError, TypeError, KeyError):
            unreadable.append(line)
    return kept, unreadable


def _parse(record: dict[str, Any]) -> SpooledMessage:
    values, is_active, _, tool_calls, tools, preview = record["draft"]
    plain = {name: Stored(value[0]) if isinstance(value, list) else value for name, value in values.items()}
    asker = owner_from_column(record["owner"]) if "owner" in record else EVERYBODY
    return SpooledMessage(record["session_id"], Draft(plain, is_active, True, tool_calls, tools, preview), asker)


def _read_all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes, however many the system takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
