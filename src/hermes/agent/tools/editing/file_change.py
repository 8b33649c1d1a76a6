"""A change of one file: planned first, so that a person can see it, then made exactly as planned, or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hermes.agent.safety.opening import open_directory, open_in
from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.tools.editing.text_content import MAX_BYTES
from hermes.errors import Conflict, InvalidValue
from hermes.phrases import plural

_PERMISSIONS = 0o777
"""Set-user-id and similar bits are not kept: a program with them must not get another content."""
_NEW_FILE = 0o666
"""The mode of a new file, from which the umask of the process is taken."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A regular file as it is."""

    data: bytes
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """Another content of a file, a new file, or its removal."""

    path: Path
    """Without links."""
    before: FileState | None
    """None if there is no file."""
    after: bytes | None
    """None if the file is removed."""

    @property
    def new_directories(self) -> list[Path]:
        """The missing directories on the way, the uppermost first."""
        missing = []
        for each in self.path.parents:
            if os.path.lexists(each):
                break
            missing.append(each)
        return missing[::-1]


def read_state(path: Path) -> FileState | None:
    """Return a file as it is, by a path without links; None if there is none.

    Raises `InvalidValue` for a directory, a device, a pipe, a large file, and a file that has another name as well.
    """
    try:
        with open_directory(path.parent) as directory:
            return _read_in(directory, path)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise InvalidValue(f"{make_path_visible(path.parent)} is not a directory") from None


def make_change(change: FileChange) -> None:
    """Make a change; raise `Conflict` if the file is not as it was when the change was planned.

    A crash at any moment leaves the old content or the new. Links and directories that were exchanged meanwhile are not
    followed.
    """
    with _directory_for(change) as directory:
        found = _read_in(directory, change.path)
        if found != change.before:
            raise Conflict(
                f"{make_path_visible(change.path)} has changed since it was read; nothing was written",
                hint="read it again",
            )
        if change.after is None:
            os.unlink(change.path.name, dir_fd=directory)
        else:
            _replace(directory, change.path.name, change.after, change.before)
        with suppress(OSError):  # not every file system can do it; the file itself is written
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


@contextmanager
def _directory_for(change: FileChange) -> Iterator[int]:
    try:
        with open_directory(change.path.parent, can_make=change.before is None) as directory:
            yield directory
    except NotADirectoryError:  # also what a link is, which is not followed
        raise Conflict(
            f"a directory of {make_path_visible(change.path)} was exchanged meanwhile; nothing was written"
        ) from None


def _read_in(directory: int, path: Path) -> FileState | None:
    try:
        status = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    shown = make_path_visible(path)
    if stat.S_ISDIR(status.st_mode):
        raise InvalidValue(f"{shown} is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidValue(f"{shown} is not a regular file")
    if status.st_nlink > 1:
        raise InvalidValue(
            f"{shown} has {status.st_nlink} names (hard links), and the others may be outside; it is not changed"
        )
    if status.st_size > MAX_BYTES:
        raise InvalidValue(f"{shown} has {plural(status.st_size, 'byte')}; at most {MAX_BYTES} can be changed")
    with open_in(directory, path) as file:
        opened = os.fstat(file.fileno())
        if (opened.st_dev, opened.st_ino) != (status.st_dev, status.st_ino):
            raise Conflict(f"{shown} was exchanged while it was read")
        data = file.read(MAX_BYTES + 1)
    return FileState(data, stat.S_IMODE(opened.st_mode), opened.st_uid, opened.st_gid)


def _replace(directory: int, name: str, data: bytes, before: FileState | None) -> None:
    """Put a complete new file in the place of the old one, with its mode; a new file never replaces another."""
    draft = f".hermes-{os.urandom(6).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, _NEW_FILE if before is None else 0o600, dir_fd=directory)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                _take_over(fd, before)
            os.fsync(fd)
        if before is not None:
            os.replace(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
            return
        _put_new(directory, draft, name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=directory)


def _take_over(fd: int, before: FileState) -> None:
    """Give a file the owner and the mode of the one that it replaces."""
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (before.uid, before.gid):
        try:
            os.fchown(fd, before.uid, before.gid)
        except PermissionError:
            raise InvalidValue(
                "the file belongs to another user or group, which it would lose; it is not changed"
            ) from None
    os.fchmod(fd, before.mode & _PERMISSIONS)


def _put_new(directory: int, draft: str, name: str) -> None:
    try:
        os.link(draft, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        raise Conflict("there is such a file now; nothing was written", hint="read it") from None
    except OSError:  # a file system without hard links
        if os.access(name, os.F_OK, dir_fd=directory, follow_symlinks=False):
            raise Conflict("there is such a file now; nothing was written", hint="read it") from None
        os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
