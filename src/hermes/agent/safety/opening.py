"""Opens a checked path: the file that was checked, or none."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hermes.agent.safety.visible_text import make_path_visible
from hermes.errors import InvalidValue

# Where the system allows it, directories need not be readable, as for any other program.
SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a directory on the way to a file is opened."""


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file by a path without links; raise `InvalidValue` for a device or a pipe, without waiting for it.

    A directory that became a link since the path was checked is not followed: that raises `OSError`.
    """
    with open_directory(path.parent) as directory:
        return open_in(directory, path)


@contextmanager
def open_directory(path: Path, *, can_make: bool = False) -> Iterator[int]:
    """Yield a directory by a path without links, which are never followed; missing directories can be made."""
    directory = os.open("/", SEARCH)
    try:
        for name in path.parts[1:]:
            inner = _enter(directory, name, can_make=can_make)
            os.close(directory)
            directory = inner
        yield directory
    finally:
        os.close(directory)


def open_in(directory: int, path: Path) -> BinaryIO:
    """Open the regular file with the name of a path in an open directory."""
    fd = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        kind = os.fstat(fd).st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise InvalidValue(f"{make_path_visible(path)} is not a regular file")
        return os.fdopen(fd, "rb")  # raises IsADirectoryError for a directory
    except BaseException:
        os.close(fd)
        raise


def _enter(directory: int, name: str, *, can_make: bool) -> int:
    try:
        return os.open(name, SEARCH, dir_fd=directory)
    except FileNotFoundError:
        if not can_make:
            raise
    with suppress(FileExistsError):  # another process has just made it
        os.mkdir(name, dir_fd=directory)
    return os.open(name, SEARCH, dir_fd=directory)
