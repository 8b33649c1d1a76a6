"""Kill a repair at many moments, repair again, and report what is left.

`python -m tests.fault.kill_repairs damaged.db place` prints one line for each moment: whether the repair was killed,
the result of the second repair, the number of messages, and whether the other files are as expected.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

from hermes.state.sqlite.repair.repair import repair
from tests.support.plainsql import flaws, rows

WORK = ("copying", "salvaging messages", "salvaging usage_events", "indexing")
PARTS = ("", "-wal")


def die() -> None:
    """Exit without cleanup, like a killed process."""
    os.kill(os.getpid(), signal.SIGKILL)


def at_change(number: int, path: Path) -> None:
    """Repair until just before the nth rename or removal of a file."""
    left = number

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event == "os.rename" or (event == "os.remove" and os.path.exists(str(arguments[0]))):
            left -= 1
            if left < 0:
                die()

    sys.addaudithook(watch)
    repair(path)


def at_work(what: str, path: Path) -> None:
    """Repair until a step begins."""
    repair(path, report=lambda doing, done, total: die() if doing.startswith(what) else None)


def is_killed(attempt: Callable[[], None]) -> bool:
    """Run something in its own process; return False if it finishes."""
    child = os.fork()
    if child == 0:
        attempt()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def try_it(name: str, damaged: Path, place: Path, attempt: Callable[[Path], None]) -> bool:
    """Kill one repair and run another; return False if there was nothing to kill."""
    for each in place.iterdir():
        each.unlink()
    path = place / "state.db"
    for suffix in PARTS:
        shutil.copy(f"{damaged}{suffix}", f"{path}{suffix}")
    was_killed = is_killed(lambda: attempt(path))
    condition = repair(path).condition
    found = rows(path, "SELECT count(*) FROM messages")[0][0] if not flaws(path) else "flawed"
    names = [each.name for each in place.iterdir()]
    is_kept = any(".damaged-" in each and each.endswith("-wal") for each in names)
    is_tidy = not any("partial" in each or "repaired" in each for each in names)
    sys.stdout.write(f"{name},{was_killed},{condition},{found},{is_kept},{is_tidy}\n")
    return was_killed


def main(damaged: Path, place: Path) -> None:
    """Kill during each step, and then before the first change of a file, before the second, and so on."""
    for what in WORK:
        try_it(what, damaged, place, partial(at_work, what))
    for number in count():
        if not try_it(str(number), damaged, place, partial(at_change, number)):
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
