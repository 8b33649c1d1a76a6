"""Runs a fault in its own process, within a time limit, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.torture.outcome import Outcome

ROOT = Path(__file__).parents[2]
LIMIT_S, LIMIT_PER_ROUND_S = 120.0, 60.0


def run(name: str, directory: Path, *, seed: int, rounds: int, is_quick: bool = False) -> Outcome:
    """Run some rounds of a fault, each with its own seed; the files of failed rounds stay in `directory`."""
    program = [sys.executable, "-m", "tests.torture.trial", name, str(seed), str(rounds), str(directory)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    process = subprocess.Popen(
        [*program, *(["--quick"] if is_quick else [])],
        stdout=subprocess.PIPE,
        text=True,
        env=variables,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT_S + rounds * LIMIT_PER_ROUND_S)
    except subprocess.TimeoutExpired:
        output = ""
    finally:
        # The processes that it started belong to its group, even if it has ended.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    if code != 0 or not output:
        return Outcome(times=rounds, complaints=[f"seed {seed}: the trial itself ended with {code}"])
    return Outcome.from_json(output)


def assert_unharmed(name: str, directory: Path, *, rounds: int = 1) -> None:
    """Assert that a store loses nothing in some quick rounds of a fault."""
    outcome = run(name, directory, seed=1, rounds=rounds, is_quick=True)
    assert outcome.is_clean, outcome
    assert outcome.times, "the fault did not strike"
