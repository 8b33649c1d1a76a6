"""Runs the stories of seeds on a store with virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import apsw
import pytest

from hermes.state.lanes.queue import leases
from hermes.state.sqlite.connection import SqliteDialect, open_writer
from hermes.state.sqlite.provider import SQLiteSessionDBProvider
from hermes.state.sqlite.schema import inspection
from tests.simulation.checks import check_world
from tests.simulation.scenario import run_story
from tests.simulation.virtual_loop import run_virtual
from tests.simulation.world import DatabaseClock, World

START_S = 1_800_000_000.0
PAUSE_S = 1_000.0


@dataclass
class SimulatedTime:
    """A store, its clock, and the time at which the next story begins."""

    provider: SQLiteSessionDBProvider
    directory: Path
    clock: DatabaseClock
    now: float = START_S


@contextmanager
def simulated_store(directory: Path) -> Iterator[SimulatedTime]:
    """Open a store whose database has virtual time; its writes need not survive a power loss."""
    with pytest.MonkeyPatch.context() as patch:
        clock = DatabaseClock(SqliteDialect, patch)
        patch.setattr(inspection, "open_writer", _open_without_sync)
        with SQLiteSessionDBProvider(directory / "state.db") as provider:
            yield SimulatedTime(provider, directory, clock)


def count_messages(store: SimulatedTime) -> int:
    """Return how many messages the stories of a store have accepted."""
    return store.provider.turns.peek().newest_id


def _open_without_sync(path: Path, *, runs_triggers: bool = True) -> apsw.Connection:
    connection = open_writer(path, runs_triggers=runs_triggers)
    connection.execute("PRAGMA synchronous = off")
    return connection


def run_seed(seed: int, store: SimulatedTime) -> World:
    """Run the story of a seed, check its end and return it."""

    worlds: list[World] = []  # keeps the tasks of dead processes
    leases._claims = count()  # every sixteenth claim differs, so a story must not depend on those before it

    async def story() -> None:
        store.clock.read = asyncio.get_running_loop().time
        worlds.append(await run_story(seed, store.provider, store.directory))
        check_world(worlds[0])

    _, store.now = run_virtual(story(), store.now + PAUSE_S)
    return worlds[0]
