"""A switch for tests and development: the store raises if it is used on the thread of a running event loop.

Such a call would stop every other task of the loop until the database has responded. The environment variable
`HERMES_LOOP_GUARD=1` turns the switch on when a process starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

is_on = os.environ.get("HERMES_LOOP_GUARD") == "1"
"""Engines look at this before every operation, and call `refuse_on_loop` only if it is set."""


@contextmanager
def guard_event_loop() -> Iterator[None]:
    """Turn the switch on for all threads of this process, until the end of the block."""
    global is_on
    before, is_on = is_on, True
    try:
        yield
    finally:
        is_on = before


def refuse_on_loop(operation: str, work: Any = None) -> None:
    """Raise `RuntimeError`, which names the operation and its work, if this thread runs an event loop."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    work = getattr(work, "func", work)
    what = operation if work is None else f"{operation} ({getattr(work, '__qualname__', work)})"
    raise RuntimeError(f"the store's {what} blocks the event loop: use AsyncSessionDB, or call it on another thread")
