"""Upgrade copies of an old file in processes that kill themselves at some point.

`python -m tests.upgrade.kill_upgrades old.db directory statements 4` creates `directory/<n>/state.db` for n = 4, 8, 12
and so on, each upgraded by a process that was killed before its n-th statement, until one finishes. `steps` instead of
`statements` counts hundreds of instructions of SQLite's machine, so that statements are killed halfway.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path

import apsw

from hermes_state import SessionDB

INSTRUCTIONS_PER_STEP = 100


class Countdown:
    """Kills this process after a number of calls."""

    def __init__(self, left: int) -> None:
        self.left = left

    def tick(self) -> bool:
        """Count down by one."""
        self.left -= 1
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return False


def upgrade(path: Path, unit: str, countdown: Countdown) -> None:
    """Open a file, which upgrades it; the process dies if the countdown ends before."""

    def watch(connection: apsw.Connection) -> None:
        if unit == "statements":
            connection.exec_trace = lambda *_: not countdown.tick()
        else:
            connection.set_progress_handler(countdown.tick, INSTRUCTIONS_PER_STEP)

    apsw.connection_hooks.append(watch)
    SessionDB(path).close()


def main(old: Path, directory: Path, unit: str, stride: int) -> None:
    """Kill one upgrade after the other, each a little later."""
    for left in count(stride, stride):
        path = directory / str(left) / "state.db"
        path.parent.mkdir(parents=True)
        shutil.copy(old, path)
        child = os.fork()
        if child == 0:
            upgrade(path, unit, Countdown(left))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
