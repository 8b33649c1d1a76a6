"""Session stores in a temporary home: with a database, and without one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from hermes.errors import StoreUnavailable
from hermes.gateway import GatewayConfig, SessionStore
from hermes.gateway.store import connection
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.gateway.store.database import Database, Time


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of an empty store takes a quarter of the time of creating one."""
    path = tmp_path_factory.mktemp("empty") / "state.db"
    SessionDB(path).close()
    return path


@pytest.fixture
def home(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copyfile(empty_database, tmp_path / "state.db")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.setattr(connection, "RETRY_S", 0.0)
    return tmp_path


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def database(home: Path, time: Time) -> Database:
    return Database(home / "state.db", time)


class MakeStore(Protocol):
    """Opens a session store of the test's home."""

    def __call__(self, config: GatewayConfig | None = None, **more: Any) -> SessionStore: ...


@pytest.fixture
def make_store(home: Path, database: Database, time: Time) -> Iterator[MakeStore]:
    stores: list[SessionStore] = []

    def make(config: GatewayConfig | None = None, **more: Any) -> SessionStore:
        opener = more.pop("opener", database.open)
        store = SessionStore(home / "sessions", config or GatewayConfig(), clock=time, opener=opener, **more)
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


@pytest.fixture(params=["database", "files"])
def any_store(request: pytest.FixtureRequest, make_store: MakeStore, database: Database) -> Callable[..., SessionStore]:
    """Opens a store, once with its database and once without."""
    if request.param == "files":
        database.is_down = True
    return make_store


def refuse() -> SessionDBProvider:
    """An opener without a database."""
    raise StoreUnavailable("no database here")
