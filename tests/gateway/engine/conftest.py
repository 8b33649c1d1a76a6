"""Nodes without adapters on a store in a temporary home; no store call may run on the event loop."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.state.loop_guard import guard_event_loop
from hermes_state import SessionDB
from tests.gateway.engine.engine_node import EngineNode, Scenario, running
from tests.support.clock import FakeClock

RunScenario = Callable[..., None]
"""Runs a scenario on a node; the other arguments are those of `EngineNode`."""


@pytest.fixture(autouse=True)
def guarded_loop() -> Iterator[None]:
    """Let every store raise that is used on the thread of an event loop."""
    with guard_event_loop():
        yield


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of an empty store takes a quarter of the time of creating one."""
    path = tmp_path_factory.mktemp("empty") / "state.db"
    SessionDB(path).close()
    return path


@pytest.fixture
def home(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    shutil.copyfile(empty_store, tmp_path / "state.db")
    return tmp_path


@pytest.fixture
def provider(home: Path) -> Iterator[SessionDB]:
    with SessionDB(home / "state.db") as provider:
        yield provider


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make_node(home: Path, provider: SessionDB, clock: FakeClock) -> Iterator[Callable[..., EngineNode]]:
    made: list[EngineNode] = []

    def make(**options: Any) -> EngineNode:
        made.append(EngineNode(home, provider, clock, **options))
        return made[-1]

    yield make
    for node in made:
        node.store.store.close()


@pytest.fixture
def run(make_node: Callable[..., EngineNode]) -> RunScenario:
    def run_scenario(scenario: Scenario, **options: Any) -> None:
        async def main() -> None:
            async with running(make_node(**options)) as node:
                await scenario(node)

        asyncio.run(main())

    return run_scenario
