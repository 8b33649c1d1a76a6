"""Skills in a Hermes home, and a session that sees them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.clock import system_clock
from hermes.state.provider import SessionDBProvider
from tests.agent.skills.writing import with_skills
from tests.agent.tools.workbench import Workbench
from tests.support.stores import SqliteStores


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Hermes home without skills."""
    home = tmp_path / "person" / ".hermes"
    home.mkdir(parents=True, mode=0o700)
    return home


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> SqliteStores:
    """Makes empty stores."""
    return SqliteStores(tmp_path_factory.mktemp("empty"))


@pytest.fixture
def store(home: Path, stores: SqliteStores) -> Iterator[SessionDBProvider]:
    """An empty store in the Hermes home."""
    with stores.open(home, "state", system_clock, read_only=False) as store:
        yield store


@pytest.fixture
def bench(home: Path, store: SessionDBProvider) -> Iterator[Workbench]:
    """A session of the terminal that sees the skills, whose user allows everything once."""
    work = home.parent / "work"
    work.mkdir()
    bench = Workbench(home, work, store)
    with_skills(bench)
    yield bench
    bench.context.processes.close(kill=True)
