"""Shells for tests: those that are installed, and those from Debian's packages."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.support import packages
from tests.support.servers import RUN

SHELLS = ("bash", "zsh", "fish")
"""The names of programs, which are also those of their packages."""
PATIENCE_S = packages.PATIENCE_S + 60
"""The time limit of a test that needs a shell, which may have to be installed first."""

_ENDING = ".not-found"


def find(shell: str) -> str:
    """The program of a shell, installed if necessary; raise OSError if it is not available."""
    if found := shutil.which(shell):
        return found
    place = Path(os.environ[RUN])
    note = place / f"{shell}{_ENDING}"
    # One worker of the run installs all that is missing, and leaves a note for the others if that fails.
    with open(place / "shells.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if shutil.which(shell) is None and not note.exists():
            packages.install(*missing_shells())
            for each in missing_shells():
                (place / f"{each}{_ENDING}").write_text("it is not on the path and cannot be installed")
    if found := shutil.which(shell):
        return found
    raise OSError(note.read_text())


def missing(place: Path) -> Iterator[str]:
    """A line for every shell that a run needed and could not install."""
    for note in sorted(place.glob(f"*{_ENDING}")):
        yield f"{note.stem} was not tested: {note.read_text()}"


def missing_shells() -> list[str]:
    """The shells that are not installed."""
    return [shell for shell in SHELLS if shutil.which(shell) is None]
