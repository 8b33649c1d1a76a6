"""Runs the product's commands as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from tests.torture.forked import Forked

LIMIT_S = 120.0


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the product to its end."""
    program, variables = _hermes(home, arguments)
    return subprocess.run(program, env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def start(home: Path, *arguments: str) -> Forked:
    """Start a command of the product that will be killed."""
    program, variables = _hermes(home, arguments)
    return Forked(lambda pipe: pipe.exec_program(program, variables))


def time_of(home: Path, *arguments: str) -> float:
    """How many seconds a command takes when nothing interrupts it."""
    started = time.monotonic()
    run(home, *arguments)
    return time.monotonic() - started


def kill_within(home: Path, longest_s: float, random: Random, *arguments: str) -> None:
    """Start a command and kill it at a random moment, unless it ends before."""
    with start(home, *arguments) as victim:
        time.sleep(random.uniform(0, longest_s))
        victim.kill()
        victim.end()


def _hermes(home: Path, arguments: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "hermes.cli.main", *arguments], {**os.environ, "HERMES_HOME": str(home)}
