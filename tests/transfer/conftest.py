"""A store that has some of everything, and stores of every engine to carry it to."""

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
    """An empty store of one engine."""
    return open_store("target")


@pytest.fixture
def source(tmp_path: Path, clock: FakeClock) -> Path:
    """A file that has some of everything."""
    path = tmp_path / "source.db"
    with SessionDB(path, clock=clock) as store:
        fill(store, clock)
    return path


@pytest.fixture
def origin(source: Path) -> Iterator[SessionDBProvider]:
    """The same file, only to be read."""
    with SessionDB(source, read_only=True) as store:
        yield store
