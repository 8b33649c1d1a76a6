"""A store that has some of everything, and stores of every engine to carry it to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.support.servers import NoServer, are_required
from tests.support.stores import ENGINES, Opener, Stores
from tests.transfer.contents import fill


@pytest.fixture
def clock() -> FakeClock:
    """The time of every store that the test opens."""
    return FakeClock()


@pytest.fixture(scope="session", params=sorted(ENGINES))
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """One engine, ready to make stores."""
    try:
        made = ENGINES[request.param](tmp_path_factory.mktemp(request.param))
    except NoServer as exc:
        if are_required():
            pytest.fail(f"there is no server for {request.param}: {exc}")
        pytest.skip(f"there is no server for {request.param}: {exc}")
    yield made
    made.close()


@pytest.fixture
def open_store(stores: Stores, tmp_path: Path, clock: FakeClock) -> Iterator[Opener]:
    """Opens stores of one engine; they are closed after the test."""
    opened: list[SessionDBProvider] = []

    def open_named(name: str = "target", *, read_only: bool = False) -> SessionDBProvider:
        opened.append(stores.open(tmp_path, name, clock, read_only=read_only))
        return opened[-1]

    yield open_named
    for store in opened:
        stores.discard(store)
    stores.release(tmp_path)


@pytest.fixture
def target(open_store: Opener) -> SessionDBProvider:
    """An empty store of one engine."""
    return open_store()


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
