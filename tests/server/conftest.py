"""A database for a store on a server of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.config import SessionDBConfig
from hermes.state.server.provider import ServerProvider
from tests.server.kinds import KINDS, Connection, Kind


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the test's own directory as the home, so that spooled messages go there."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    """A kind of server."""
    return KINDS[request.param]


@pytest.fixture
def dsn(kind: Kind, tmp_path: Path) -> Iterator[str]:
    """The DSN of an empty place for a store; removed after the test."""
    with kind.place(tmp_path) as made:
        yield made


@pytest.fixture
def settings(kind: Kind) -> SessionDBConfig:
    """The settings of the test's stores."""
    return SessionDBConfig(provider=kind.provider.kind.name, write_timeout_s=10)


@pytest.fixture
def store(kind: Kind, dsn: str, settings: SessionDBConfig) -> Iterator[ServerProvider[Any]]:
    """An empty store."""
    with kind.provider(dsn, settings=settings) as opened:
        yield opened


@pytest.fixture
def connection(kind: Kind, dsn: str) -> Iterator[Connection]:
    """A connection of another program to the test's database."""
    opened = kind.connect(dsn)
    yield opened
    opened.close()
