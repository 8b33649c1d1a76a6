"""Where the temporary directories of a run lie: those who give up being root must be able to get there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

OPEN_PLACES = ("/tmp", "/var/tmp", "/dev/shm")


def leave_closed_places() -> None:
    """Have a run by root use a directory for temporary files that every user may pass through."""
    if os.name != "posix" or os.geteuid() != 0 or may_be_entered(Path(tempfile.gettempdir())):
        return
    chosen = next((place for place in OPEN_PLACES if may_be_entered(Path(place))), None)
    if chosen is not None:
        os.environ["TMPDIR"] = tempfile.tempdir = chosen


def may_be_entered(place: Path) -> bool:
    """Whether every user may pass through a directory and all above it."""
    real = place.resolve()
    return all(each.is_dir() and each.stat().st_mode & 0o001 for each in (real, *real.parents))
