"""Chooses the directory for the temporary files of a run: in memory where there is enough, and open to every user."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
"""A file system in memory. Tests sync many small files, and on a disk they would spend most of their time on that."""
LEAST_FREE_BYTES = 6 << 30
"""How many bytes must be free; a run uses about a third of them."""
ON_DISK = (Path("/tmp"), Path("/var/tmp"))

_available = re.compile(r"^MemAvailable:\s+(\d+) kB$", re.MULTILINE)


def choose_temporary_directory() -> None:
    """Use the chosen directory in this process and its children; `TMPDIR` is obeyed if every user can enter it."""
    if os.name != "posix":
        return
    in_memory = [MEMORY] if "TMPDIR" not in os.environ and has_space(MEMORY) else []
    candidates = [*in_memory, Path(tempfile.gettempdir()), *ON_DISK]
    chosen = next((each for each in candidates if os.geteuid() or can_be_entered(each)), candidates[0])
    os.environ["TMPDIR"] = tempfile.tempdir = str(chosen)


def has_space(directory: Path, memory: Path = Path("/proc/meminfo")) -> bool:
    """Whether a directory in memory can be written to, and neither it nor the machine runs out of memory."""
    if not (directory.is_dir() and os.access(directory, os.W_OK) and memory.exists()):
        return False
    found = _available.search(memory.read_text())
    available = int(found[1]) * 1024 if found else 0
    return min(available, shutil.disk_usage(directory).free) >= LEAST_FREE_BYTES


def can_be_entered(directory: Path) -> bool:
    """Whether every user may enter a directory and all above it."""
    real = directory.resolve()
    return all(each.is_dir() and each.stat().st_mode & 0o001 for each in (real, *real.parents))
