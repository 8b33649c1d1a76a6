"""Hard links: other names of files that are protected where they belong."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path

from hermes.agent.safety.protected_names import DIRECTORIES, has_secret_name

MAX_FILES = 500
"""How many entries of each protected directory are looked at, the outer ones first."""

_Identity = tuple[int, int]


class ProtectedFiles:
    """The protected files with several names: in home directories, in their directories of keys, in the Hermes home."""

    def __init__(self, homes: Iterable[Path], hermes_home: Path, passed_over: str, root: Path | None) -> None:
        """`passed_over` is the directory in the Hermes home that is not looked at, `root` that of the session."""
        self._homes = list(homes)
        self._root = root
        self._hermes_home = hermes_home
        self._passed_over = passed_over

    def has(self, path: Path) -> bool:
        """Whether a path without links is another name of one of these files, or of a secret beside it."""
        status = _status_with_other_names(path)
        if status is None:
            return False
        return (status.st_dev, status.st_ino) in self._identities or self._is_secret_beside(path, status)

    def _is_secret_beside(self, path: Path, status: os.stat_result) -> bool:
        """Whether the file has the name of a secret in its own directory or in that of the session."""
        entries = (each for place in {path.parent, self._root} if place for each in _entries(place, MAX_FILES))
        return any(each.inode() == status.st_ino and has_secret_name(f"/{each.name.casefold()}") for each in entries)

    @cached_property
    def _identities(self) -> frozenset[_Identity]:
        return frozenset((each.st_dev, each.st_ino) for each in self._files() if _is_linked(each))

    def _files(self) -> Iterator[os.stat_result]:
        for home in self._homes:
            yield from _files_below(home, depth=0, hidden_only=True)
            for name in DIRECTORIES:
                yield from _files_below(home / name)
        yield from _files_below(self._hermes_home, passed_over=self._passed_over)


def has_other_names(path: Path) -> bool:
    """Whether a path without links names a regular file that has other names too."""
    return _status_with_other_names(path) is not None


def _status_with_other_names(path: Path) -> os.stat_result | None:
    """Return the status of a regular file with several names; None for everything else."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status if _is_linked(status) else None


def _is_linked(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _files_below(
    directory: Path, *, depth: int | None = None, hidden_only: bool = False, passed_over: str = ""
) -> Iterator[os.stat_result]:
    """Yield the files below a directory; with `depth` 0 only those in it."""
    # A home directory has many entries that do not count.
    waiting, left = deque([directory]), MAX_FILES * (10 if hidden_only else 1)
    while waiting and left > 0:
        found = _entries(waiting.popleft(), left)
        left -= len(found)
        for entry in found:
            if hidden_only and not entry.name.startswith("."):
                continue
            try:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False)
                elif depth is None and entry.name != passed_over:
                    waiting.append(Path(entry.path))
            except OSError:
                continue  # it was deleted meanwhile


def _entries(directory: Path, limit: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(islice(entries, limit))
    except OSError:
        return []  # there is none, or it cannot be read
