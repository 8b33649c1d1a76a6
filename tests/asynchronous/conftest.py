"""Tests of stores on an event loop: a call that would block the loop raises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hermes.state.loop_guard import guard_event_loop


@pytest.fixture(autouse=True)
def guarded_loop() -> Iterator[None]:
    """Let every store raise that is used on the thread of an event loop."""
    with guard_event_loop():
        yield
