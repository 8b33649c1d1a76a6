"""The simulation notices faults: each of these is planted into the gateway, and some seed fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.planted import PLANTS, Plant
from tests.simulation.stories import run_seed, simulated_store

MOST_SEEDS = 300


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_planted_fault_is_found(plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found = None
    for seed in range(MOST_SEEDS):
        directory = tmp_path / str(seed)
        directory.mkdir()
        with simulated_store(directory) as store:
            try:
                run_seed(seed, store)
            except AssertionError as error:
                found = error
                break
    assert found is not None
