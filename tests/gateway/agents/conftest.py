"""A home with an empty store, and an event loop on which no store call may run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.loop_guard import guard_event_loop
from hermes_state import SessionDB


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HERMES_HOME", str(home))
    return home


@pytest.fixture
def store(home: Path) -> Iterator[SessionDB]:
    with SessionDB(home / "state.db") as store:
        yield store


@pytest.fixture(autouse=True)
def guarded_loop() -> Iterator[None]:
    """Let every store raise that is used on the thread of an event loop."""
    with guard_event_loop():
        yield
