"""Simulated stories of the gateway, on all cores, until one seed after the other is done."""

from __future__ import annotations

import logging
import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.simulation.stories import count_messages, run_seed, simulated_store
from tests.torture.outcome import Outcome

BATCH = 50
"""So many seeds share a database."""
REPORT_EVERY = 5_000


def try_stories(first: int, count: int, report: Callable[[str], None]) -> Outcome:
    """Run `count` seeds from `first` on; each failing one is a complaint that names it."""
    batches = [range(start, min(start + BATCH, first + count)) for start in range(first, first + count, BATCH)]
    outcome, done = Outcome(), 0
    with multiprocessing.get_context("spawn").Pool() as pool:
        for each in pool.imap_unordered(_run_batch, batches):
            outcome.add(each)
            if done // REPORT_EVERY != (done + each.times) // REPORT_EVERY:
                report(f"{done + each.times} of {count} stories, {len(outcome.complaints)} failed")
            done += each.times
    outcome.notes = [f"{count:,} seeds from {first:,}"]
    return outcome


def _run_batch(seeds: range) -> Outcome:
    logging.disable(logging.CRITICAL)
    outcome = Outcome()
    left = seeds
    while left:
        # A failing story may leave its database in the middle, so the next one gets another.
        with tempfile.TemporaryDirectory(prefix="stories-") as directory:
            left = _run_some(left, Path(directory), outcome)
    return outcome


def _run_some(seeds: range, directory: Path, outcome: Outcome) -> range:
    """Run seeds until one fails; return the rest."""
    with simulated_store(directory) as store:
        for seed in seeds:
            outcome.times += 1
            try:
                run_seed(seed, store)
                outcome.recovered += 1
            except Exception as error:  # noqa: BLE001 - whatever happens, the seed is reported
                outcome.complaints.append(f"seed {seed}: {str(error)[:300]}")
                return range(seed + 1, seeds.stop)
        outcome.acknowledged += count_messages(store)
    return range(0)
