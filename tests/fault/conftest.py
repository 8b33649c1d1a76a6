"""A store for the fault tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.sqlite.engine import SqliteEngine
from hermes_state import SessionDB
from tests.fault.child import SESSION


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with one empty session."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session(SESSION, "cli")
    return path


@pytest.fixture
def db(path: Path) -> Iterator[SessionDB]:
    """The same store, open."""
    with SessionDB(path) as db:
        yield db


@pytest.fixture
def engine(path: Path) -> Iterator[SqliteEngine]:
    """The engine under the same store."""
    engine = SqliteEngine(path)
    try:
        yield engine
    finally:
        engine.close()
