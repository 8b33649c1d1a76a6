"""Processes that end in the middle of writing to the database or to its log."""

from __future__ import annotations

import signal
import sys
import threading
import time
from mmap import mmap

from hermes_state import StoreClosed
from tests.torture.disk import Access, Countdown, Disk, Target, die
from tests.torture.fault import Fault, Trial
from tests.torture.forked import Forked
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor, checkpoint_and_index_often

DEATHS = 5
OTHERS = 2
LONGEST_S = 0.25
MANNERS = AT_ONCE, IN_ORDER, AS_SCRIPTS_DO = "at once", "in order", "as scripts do"
"""How processes end at SIGTERM: by default, after finishing their work, or by an exception in the main thread."""
PAGE_S = 0.004
"""How long each page of a checkpoint takes, so that a signal arrives during it."""


def kill_in_checkpoint(trial: Trial) -> Outcome:
    """Kill processes while a checkpoint writes a page, syncs, or truncates the file."""
    return _die(trial, "database", 100)


def kill_in_commit(trial: Trial) -> Outcome:
    """Kill processes while a commit writes a page of the log, syncs, or writes the log's header."""
    return _die(trial, "log", 2_000)


def _die(trial: Trial, target: Target, most: int) -> Outcome:
    with Supervisor(trial.store, trial.random) as supervisor:
        for _ in range(OTHERS):
            supervisor.start_writer(threads=1)
        last: Forked | None = None
        for _ in range(DEATHS):
            disk = Countdown(trial.random.randint(1, most), die, target)
            last = supervisor.start_writer(after=last, prepare=lambda disk=disk: Disk(disk))  # type: ignore[misc]
            code = supervisor.wait_for_end(last)
            assert code == -signal.SIGKILL, f"a process that was to die ended with {code}"
        supervisor.kill_all_writers()
        return supervisor.judge(DEATHS + OTHERS)


def terminate_in_checkpoint(trial: Trial) -> Outcome:
    """Send SIGTERM to processes that are in a checkpoint, and that end at once, in order, or like scripts."""
    with Supervisor(trial.store, trial.random) as supervisor:
        supervisor.start_writer(threads=1)
        last: Forked | None = None
        for _ in range(DEATHS):
            inside = mmap(-1, 1)
            last = _start_writer_for_signal(supervisor, trial.random.choice(MANNERS), inside, last)
            supervisor.listen(trial.random.uniform(0, LONGEST_S))
            supervisor.listen_until(lambda inside=inside: inside[0] == 1)  # type: ignore[misc]
            last.signal(signal.SIGTERM)
            code = supervisor.wait_for_end(last)
            assert code in (0, -signal.SIGTERM), f"a process that was asked to end did so with {code}"
        supervisor.kill_all_writers()
        # Threads of a process that has closed the store get StoreClosed.
        supervisor.journal.failures = [
            each for each in supervisor.journal.failures if not each.startswith(StoreClosed.code)
        ]
        return supervisor.judge(DEATHS)


def _start_writer_for_signal(supervisor: Supervisor, manner: str, inside: mmap, last: Forked | None) -> Forked:
    """Start a writer that handles SIGTERM in a given way and marks in shared memory that it is in a checkpoint."""
    over = threading.Event()

    def handle(*_: object) -> None:
        over.set()
        if manner == AS_SCRIPTS_DO:
            sys.exit(0)

    def delay(access: Access) -> None:
        # A handler that raises would raise in here, where there is no Python code without this disk.
        if access.target == "database" and not (manner == AS_SCRIPTS_DO and is_main_thread()):
            inside[0] = 1
            time.sleep(PAGE_S)
            inside[0] = 0

    def prepare() -> Disk:
        checkpoint_and_index_often()
        if manner != AT_ONCE:
            signal.signal(signal.SIGTERM, handle)
        return Disk(delay)

    return supervisor.start_writer(after=last, is_over=over.is_set, prepare=prepare)


def is_main_thread() -> bool:
    """Whether this is the thread that gets signals."""
    return threading.current_thread() is threading.main_thread()


FAULTS = (
    Fault("kill-checkpoint", "killed in a checkpoint, with half a page written", kill_in_checkpoint, 12),
    Fault("kill-commit", "killed in a commit, with half a page of the log written", kill_in_commit, 12),
    Fault(
        "term-checkpoint", "SIGTERM in a checkpoint: ends at once, in order, as scripts do", terminate_in_checkpoint, 10
    ),
)
