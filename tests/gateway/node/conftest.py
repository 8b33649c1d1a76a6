"""A home with an empty store, and an event loop on which no store call may run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.loop_guard import guard_event_loop
from hermes_state import SessionDB


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of an empty store takes a quarter of the time of creating one."""
    path = tmp_path_factory.mktemp("empty") / "state.db"
    SessionDB(path).close()
    return path


@pytest.fixture
def home(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    shutil.copyfile(empty_store, tmp_path / "state.db")
    return tmp_path


@pytest.fixture(autouse=True)
def guarded_loop() -> Iterator[None]:
    """Let every store raise that is used on the thread of an event loop."""
    with guard_event_loop():
        yield
