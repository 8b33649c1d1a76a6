"""After any sequence of operations on lanes the store equals a plain model, on every engine."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from hermes_state import SessionDB
from tests.property.lane_machine import LaneMachine
from tests.support.servers import server_or_skip
from tests.support.stores import ENGINES

IS_LONG = os.environ.get("HERMES_LONG") == "1"


def profile(examples: int, steps: int) -> settings:
    """Settings for so many sequences of so many operations."""
    return settings(
        max_examples=examples * (20 if IS_LONG else 1),
        stateful_step_count=steps,
        derandomize=not IS_LONG,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def test_lanes_of_a_file_equal_the_model() -> None:
    place = Path(tempfile.mkdtemp())
    SessionDB(place / "empty.db").close()

    class FileMachine(LaneMachine):
        made_files = 0

        @staticmethod
        def open() -> SessionDB:
            FileMachine.made_files += 1
            path = place / f"{FileMachine.made_files}.db"
            shutil.copyfile(place / "empty.db", path)
            return SessionDB(path)

    try:
        run_state_machine_as_test(FileMachine, settings=profile(200, 50))
    finally:
        shutil.rmtree(place)
    assert FileMachine.made_files >= 100


@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
def test_lanes_of_a_server_equal_the_model(engine: str, tmp_path: Path) -> None:
    stores = server_or_skip(lambda: ENGINES[engine](tmp_path))
    opened: list[Path] = []

    class ServerMachine(LaneMachine):
        @staticmethod
        def open():  # type: ignore[no-untyped-def]
            opened.append(tmp_path / str(len(opened)))
            return stores.open(opened[-1], "main", lambda: 1e9, read_only=False)

        def close(self) -> None:
            stores.discard(self.db)
            stores.release(opened[-1])

    try:
        run_state_machine_as_test(ServerMachine, settings=profile(8, 40))
    finally:
        stores.close()
    assert len(opened) >= 8
