"""A description of the machine, without its name."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from statistics import median

import apsw


def describe(directory: Path) -> str:
    """One line: system, processor and its load, Python, SQLite and the cost of an fsync."""
    return (
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"{platform.python_implementation()} {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}; "
        f"{_file_system(directory)} with {fsync_ms(directory):.2f} ms per fsync of 4 KB"
    )


def fsync_ms(directory: Path, repeats: int = 100) -> float:
    """The median of writing and syncing a page at the end of a file."""
    path = directory / "fsync-probe"
    samples: list[float] = []
    with path.open("wb", buffering=0) as file:
        for _ in range(repeats):
            file.write(bytes(4096))
            started = time.perf_counter()
            os.fsync(file.fileno())
            samples.append((time.perf_counter() - started) * 1000)
    path.unlink()
    return median(samples)


def _file_system(directory: Path) -> str:
    """The type of the mount with the directory, if the system says so."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "a file system"
    fields = [line.split() for line in mounts.read_text().splitlines()]
    holding = [(entry[1], entry[2]) for entry in fields if directory.resolve().is_relative_to(entry[1])]
    return max(holding, key=lambda mount: len(mount[0]))[1] if holding else "a file system"
