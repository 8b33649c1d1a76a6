"""Runs some rounds of one fault: `python -m tests.torture.trial kill-writers 7 3 directory`."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import traceback
from pathlib import Path
from random import Random

from tests.torture.fault import Fault, Trial
from tests.torture.faults import FAULTS
from tests.torture.outcome import Outcome

MOST_COMPLAINTS = 6
"""The most complaints that are kept of one round."""


def run_rounds(fault: Fault, seed: int, rounds: int, directory: Path, *, is_quick: bool) -> Outcome:
    """Run the fault on new stores, one after the other; the files of a failed round are kept."""
    total = Outcome()
    for number in range(seed, seed + rounds):
        trial = Trial(directory / f"{fault.name}-{number}", Random(number), is_quick)
        trial.directory.mkdir(parents=True)
        outcome = _strike(fault, trial)
        outcome.complaints = [f"seed {number}: {each}" for each in outcome.complaints[:MOST_COMPLAINTS]]
        total.add(outcome)
        if outcome.is_clean:
            shutil.rmtree(trial.directory)
        if outcome.not_run:
            break
    return total


def _strike(fault: Fault, trial: Trial) -> Outcome:
    try:
        return fault.strike(trial)
    except Exception as exc:  # noqa: BLE001 - a round that raises is an outcome too
        traceback.print_exc()
        return Outcome(times=1, complaints=[f"{type(exc).__name__}: {exc}"])


def main() -> None:
    """Print the outcome as one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.trial", description=__doc__)
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("seed", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--quick", action="store_true", help="the shorter form of the fault")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=options.directory / f"{options.fault}.log")
    outcome = run_rounds(FAULTS[options.fault], options.seed, options.rounds, options.directory, is_quick=options.quick)
    sys.stdout.write(f"{outcome.to_json()}\n")


if __name__ == "__main__":
    main()
