"""Opens a checked path: the file that was checked, or none."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from hermes.agent.safety.visible_text import make_path_visible
from hermes.errors import InvalidValue


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file by a path without links; raise `InvalidValue` for a device or a pipe, without waiting for it.

    A directory that became a link since the path was checked is not followed: that raises `OSError`.
    """
    # Where the system allows it, directories need not be readable, as for any other program.
    search = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open("/", search)
    try:
        for name in path.parts[1:-1]:
            inner = os.open(name, search, dir_fd=directory)
            os.close(directory)
            directory = inner
        fd = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    finally:
        os.close(directory)
    file = os.fdopen(fd, "rb")
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        file.close()
        raise InvalidValue(f"{make_path_visible(path)} is not a regular file")
    return file
