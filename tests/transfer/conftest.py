"""A store with rows in every table, and empty stores of every engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.support.engines import clock, open_store, stores
from tests.support.stores import Opener
from tests.transfer.contents import fill

__all__ = ["clock", "open_store", "origin", "source", "stores", "target"]


@pytest.fixture
def target(open_store: Opener) -> SessionDBProvider:
    """Open an empty store of one engine."""
    return open_store("target")


@pytest.fixture
def source(tmp_path: Path, clock: FakeClock) -> Path:
    """Create a file with rows in every table."""
    path = tmp_path / "source.db"
    with SessionDB(path, clock=clock) as store:
        fill(store, clock)
    return path


@pytest.fixture
def origin(source: Path) -> Iterator[SessionDBProvider]:
    """Open the same file read-only."""
    with SessionDB(source, read_only=True) as store:
        yield store
