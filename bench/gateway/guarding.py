"""Counts store calls on the event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hermes.state import loop_guard


class Refusals:
    """How many store calls were refused because they ran on an event loop; the engine may catch their errors."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""


@contextmanager
def counted_refusals() -> Iterator[Refusals]:
    """Refuse store calls on event loops during the block, and count them."""
    refusals, original = Refusals(), loop_guard.refuse_on_loop

    def refuse(operation: str, work: Any = None) -> None:
        try:
            original(operation, work)
        except RuntimeError as error:
            refusals.count += 1
            refusals.first = refusals.first or str(error)
            raise

    loop_guard.refuse_on_loop = refuse
    try:
        with loop_guard.guard_event_loop():
            yield refusals
    finally:
        loop_guard.refuse_on_loop = original
