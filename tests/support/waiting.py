"""Waiting for other threads and processes, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 20.0


def wait_until(is_so: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    """Wait until a condition is true, or fail after the limit."""
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited {limit_s:g} s in vain: {what}"
        time.sleep(0.005)
