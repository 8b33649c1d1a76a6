"""An empty store for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.stores import SqliteStores


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> SqliteStores:
    return SqliteStores(tmp_path_factory.mktemp("stores"))


@pytest.fixture
def store(stores: SqliteStores, tmp_path: Path) -> Iterator[SessionDBProvider]:
    with stores.open(tmp_path, "store", FakeClock(), read_only=False) as store:
        yield store
