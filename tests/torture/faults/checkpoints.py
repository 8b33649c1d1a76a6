"""Processes that end in the middle of writing to the database or to its log."""

from __future__ import annotations

import signal
import sys
import threading
import time
from mmap import mmap

from hermes_state import StoreClosed
from tests.torture.disk import Access, Countdown, Disk, Target, die
from tests.torture.fault import Fault, Place
from tests.torture.forked import Forked
from tests.torture.outcome import Outcome
from tests.torture.ship import Ship, keep_house_often

DEATHS = 5
OTHERS = 2
LONGEST_S = 0.25
MANNERS = AT_ONCE, IN_ORDER, AS_SCRIPTS_DO = "at once", "in order", "as scripts do"
"""How processes end at SIGTERM: by default, by finishing what they do, by an exception in the main thread."""
PAGE_S = 0.004
"""What a page takes in a checkpoint that is to be met by a signal."""


def kill_in_checkpoint(place: Place) -> Outcome:
    """Have processes die over a page that a checkpoint writes, over its sync, or over the end of the file."""
    return _die(place, "database", 100)


def kill_in_commit(place: Place) -> Outcome:
    """Have processes die over a page of the log, over the sync that makes a commit durable, or over its header."""
    return _die(place, "log", 2_000)


def _die(place: Place, target: Target, most: int) -> Outcome:
    with Ship(place.store, place.random) as ship:
        for _ in range(OTHERS):
            ship.hire(threads=1)
        last: Forked | None = None
        for _ in range(DEATHS):
            disk = Countdown(place.random.randint(1, most), die, target)
            last = ship.hire(after=last, prepare=lambda disk=disk: Disk(disk))  # type: ignore[misc]
            code = ship.lose(last)
            assert code == -signal.SIGKILL, f"a process that was to die ended with {code}"
        ship.kill_everybody()
        return ship.judge(DEATHS + OTHERS)


def terminate_in_checkpoint(place: Place) -> Outcome:
    """Send SIGTERM to processes that are in a checkpoint, and that end at once, in order, or as scripts do."""
    with Ship(place.store, place.random) as ship:
        ship.hire(threads=1)
        last: Forked | None = None
        for _ in range(DEATHS):
            inside = mmap(-1, 1)
            last = _hire_for_a_signal(ship, place.random.choice(MANNERS), inside, last)
            ship.listen(place.random.uniform(0, LONGEST_S))
            ship.listen_until(lambda inside=inside: inside[0] == 1)  # type: ignore[misc]
            last.signal(signal.SIGTERM)
            code = ship.lose(last)
            assert code in (0, -signal.SIGTERM), f"a process that was asked to end did so with {code}"
        ship.kill_everybody()
        # Threads of a process that has closed the store are told so.
        ship.journal.failures = [each for each in ship.journal.failures if not each.startswith(StoreClosed.code)]
        return ship.judge(DEATHS)


def _hire_for_a_signal(ship: Ship, manner: str, inside: mmap, last: Forked | None) -> Forked:
    """A writer that meets SIGTERM in its manner and says, in shared memory, when it is in a checkpoint."""
    over = threading.Event()

    def hear(*_: object) -> None:
        over.set()
        if manner == AS_SCRIPTS_DO:
            sys.exit(0)

    def linger(access: Access) -> None:
        # A handler that raises would do so in here, where without this disk there is no Python.
        if access.target == "database" and not (manner == AS_SCRIPTS_DO and is_main_thread()):
            inside[0] = 1
            time.sleep(PAGE_S)
            inside[0] = 0

    def prepare() -> Disk:
        keep_house_often()
        if manner != AT_ONCE:
            signal.signal(signal.SIGTERM, hear)
        return Disk(linger)

    return ship.hire(after=last, is_over=over.is_set, prepare=prepare)


def is_main_thread() -> bool:
    """Whether this is the thread that hears signals."""
    return threading.current_thread() is threading.main_thread()


FAULTS = (
    Fault("kill-checkpoint", "killed in a checkpoint, with half a page written", kill_in_checkpoint, 12),
    Fault("kill-commit", "killed in a commit, with half a page of the log written", kill_in_commit, 12),
    Fault(
        "term-checkpoint", "SIGTERM in a checkpoint: ends at once, in order, as scripts do", terminate_in_checkpoint, 10
    ),
)
