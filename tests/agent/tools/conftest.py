"""A workbench for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.safety.approval import Approvals
from hermes.agent.safety.permits import Permits
from hermes.clock import system_clock
from hermes.state.provider import SessionDBProvider
from tests.agent.tools.workbench import Workbench
from tests.support.stores import SqliteStores


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> SqliteStores:
    """Makes empty stores."""
    return SqliteStores(tmp_path_factory.mktemp("empty"))


@pytest.fixture
def store(tmp_path: Path, stores: SqliteStores) -> Iterator[SessionDBProvider]:
    """An empty store in the Hermes home."""
    home = tmp_path / "person" / ".hermes"
    home.mkdir(parents=True)
    with stores.open(home, "state", system_clock, read_only=False) as store:
        yield store


@pytest.fixture
def bench(tmp_path: Path, store: SessionDBProvider) -> Iterator[Workbench]:
    """A session of the terminal in an empty directory, whose user allows everything once."""
    work = tmp_path / "person" / "work"
    work.mkdir()
    bench = Workbench(tmp_path / "person" / ".hermes", work, store)
    yield bench
    bench.context.processes.close(kill=True)


@pytest.fixture
def permits(tmp_path: Path) -> Permits:
    """The store of lasting permissions."""
    return Permits(tmp_path)


@pytest.fixture
def approvals(permits: Permits) -> Approvals:
    """Approvals in the mode `ask`."""
    return Approvals("ask", permits)
