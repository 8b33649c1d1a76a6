"""A process that dies on the way of a message, before any statement or commit, loses and doubles nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_process_killed_before_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fault.lane_kills", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    counted = re.fullmatch(r"killed (\d+) times, after (\d+) different calls\n", done.stdout)
    assert counted is not None, done.stderr
    assert int(counted[1]) > 50
    assert int(counted[2]) == 10
