"""Thousands of seeded stories of nodes that crash, freeze and restart, in virtual time.

A failing seed is named in the failure; `SIMULATION_SEED=<seed>` runs it alone, `SIMULATION_SEEDS=<number>` runs more.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.simulation.stories import run_seed, simulated_store

SEEDS = int(os.environ.get("SIMULATION_SEEDS", "2000"))
BATCH = 50


def batches() -> list[range]:
    """The seeds in batches that share a database."""
    if "SIMULATION_SEED" in os.environ:
        seed = int(os.environ["SIMULATION_SEED"])
        return [range(seed, seed + 1)]
    return [range(first, min(first + BATCH, SEEDS)) for first in range(0, SEEDS, BATCH)]


@pytest.mark.parametrize("seeds", batches(), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_every_message_has_one_answer_or_a_reason(seeds: range, tmp_path: Path) -> None:
    with simulated_store(tmp_path) as store:
        for seed in seeds:
            try:
                run_seed(seed, store)
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {error} (alone: SIMULATION_SEED={seed})") from error


@pytest.mark.parametrize("seed", [7, 21, 64])
def test_story_of_a_seed_does_not_depend_on_earlier_ones(seed: int, tmp_path: Path) -> None:
    traces = []
    for name, earlier in (("alone", []), ("later", [1, 2])):
        (tmp_path / name).mkdir()
        with simulated_store(tmp_path / name) as store:
            for each in earlier:
                run_seed(each, store)
            world = run_seed(seed, store)
            traces.append([(run.node, run.key, len(run.uids), run.status) for run in world.runs])
    assert traces[0] == traces[1]
    assert traces[0]
