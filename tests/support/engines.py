"""Fixtures for tests that run on every engine; a directory of such tests imports them in its `conftest.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.servers import server_or_skip
from tests.support.stores import ENGINES, Opener, Stores


@pytest.fixture
def clock() -> FakeClock:
    """The clock of every store that the test opens."""
    return FakeClock()


@pytest.fixture(scope="session", params=sorted(ENGINES))
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """A maker of stores on one engine."""
    made = server_or_skip(lambda: ENGINES[request.param](tmp_path_factory.mktemp(request.param)))
    yield made
    made.close()


@pytest.fixture
def open_store(stores: Stores, tmp_path: Path, clock: FakeClock) -> Iterator[Opener]:
    """Open stores of one engine; they are closed after the test."""
    opened: list[SessionDBProvider] = []

    def open_named(name: str = "main", *, read_only: bool = False) -> SessionDBProvider:
        opened.append(stores.open(tmp_path, name, clock, read_only=read_only))
        return opened[-1]

    yield open_named
    for store in opened:
        stores.discard(store)
    stores.release(tmp_path)
