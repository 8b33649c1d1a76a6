"""Debian's packages for tests, installed when the tests run as root, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import IO

PATIENCE_S = 240.0
"""The time limit of an installation, including the wait for installations of other processes."""

_PLACE = Path("/var/cache/hermes-tests")
_INSTALL = ("install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120")


def install(*packages: str) -> None:
    """Install packages if possible; the caller checks whether they are installed now."""
    if os.geteuid() or shutil.which("apt-get") is None:
        return
    deadline = time.monotonic() + PATIENCE_S
    _PLACE.mkdir(parents=True, exist_ok=True)
    # apt-get itself does not wait for another process that updates its lists.
    with open(_PLACE / "apt.lock", "w") as lock:
        while not _has_locked(lock):
            if time.monotonic() > deadline:
                return
            time.sleep(0.1)
        if not _has_run(deadline, *_INSTALL, *packages):
            _has_run(deadline, "update")
            _has_run(deadline, *_INSTALL, *packages)


def _has_locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _has_run(deadline: float, *arguments: str) -> bool:
    try:
        done = subprocess.run(
            ["apt-get", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(0.0, deadline - time.monotonic()),
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
