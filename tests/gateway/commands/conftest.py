"""A gateway for commands, in a temporary home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config import Config
from hermes.gateway import GatewayConfig
from hermes_state import SessionDB
from tests.gateway.commands.chats import Chats, MakeChats


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of an empty store takes a quarter of the time of creating one."""
    path = tmp_path_factory.mktemp("empty") / "state.db"
    SessionDB(path).close()
    return path


@pytest.fixture
def make_chats(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeChats]:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    shutil.copyfile(empty_store, tmp_path / "state.db")
    made: list[Chats] = []

    def make(config: Config | None = None, gateway_config: GatewayConfig | None = None) -> Chats:
        made.append(Chats(tmp_path, config or Config(), gateway_config or GatewayConfig()))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def chats(make_chats: MakeChats) -> Chats:
    """A gateway in which the users of a group have sessions of their own."""
    return make_chats()


@pytest.fixture
def shared(make_chats: MakeChats) -> Chats:
    """A gateway in which a group shares a session."""
    return make_chats(gateway_config=GatewayConfig(group_sessions_per_user=False))
