"""Disks that are full, or that fail at times."""

from __future__ import annotations

from mmap import mmap
from pathlib import Path
from random import Random

import apsw

from hermes_state import StoreFull, StoreUnavailable
from tests.torture.disk import Access, Disk, DiskFault
from tests.torture.fault import Fault, Trial
from tests.torture.mounts import small_disk
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor

SIZE = 64 << 20
FILLS = 4
FAILURES = 6
LONGEST_S = 0.3
WRITERS = 2
ODDS = 0.1
CODES = (apsw.SQLITE_FULL, apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC)


def fill_disk(trial: Trial) -> Outcome:
    """Fill the file system while processes write to it, and free it again while they continue."""
    with small_disk(trial.directory, SIZE) as refused:
        if refused:
            return Outcome(not_run=refused)
        with Supervisor(trial.store, trial.random) as supervisor:
            for _ in range(WRITERS):
                supervisor.start_writer()
            for _ in range(FILLS):
                supervisor.listen(trial.random.uniform(0.05, LONGEST_S))
                _fill(trial.directory / "ballast")
                known = len(supervisor.journal.failures)
                supervisor.listen_until(lambda known=known: len(supervisor.journal.failures) > known)  # type: ignore[misc]
                supervisor.listen(trial.random.uniform(0, LONGEST_S))
                (trial.directory / "ballast").unlink()
                _await_progress(supervisor)
            supervisor.kill_all_writers()
            return _judge(supervisor, FILLS, StoreFull.code)


def _fill(ballast: Path) -> None:
    """Leave no free space."""
    with ballast.open("wb", buffering=0) as file:
        for amount in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(amount)):
                    continue
            except OSError:
                continue


def fail_now_and_then(trial: Trial) -> Outcome:
    """Refuse one write, sync or truncation in ten for a while, like a full or failing disk, then none."""
    with Supervisor(trial.store, trial.random) as supervisor:
        is_failing = mmap(-1, 1)
        for _ in range(WRITERS):
            disk_fault = _refusal(is_failing, Random(trial.random.getrandbits(32)))
            supervisor.start_writer(prepare=lambda disk_fault=disk_fault: Disk(disk_fault))  # type: ignore[misc]
        for _ in range(FAILURES):
            supervisor.listen(trial.random.uniform(0, LONGEST_S))
            is_failing[0] = 1
            known = len(supervisor.journal.failures)
            supervisor.listen_until(lambda known=known: len(supervisor.journal.failures) > known)  # type: ignore[misc]
            supervisor.listen(trial.random.uniform(0, LONGEST_S))
            is_failing[0] = 0
            _await_progress(supervisor)
        supervisor.kill_all_writers()
        return _judge(supervisor, FAILURES, StoreFull.code, StoreUnavailable.code)


def _refusal(is_failing: mmap, random: Random) -> DiskFault:
    def refuse(_: Access) -> None:
        if is_failing[0] and random.random() < ODDS:
            raise apsw.exception_for(random.choice(CODES))

    return refuse


def _await_progress(supervisor: Supervisor) -> None:
    known = len(supervisor.journal.shared)
    supervisor.listen_until(lambda: len(supervisor.journal.shared) > known)


def _judge(supervisor: Supervisor, times: int, *codes: str) -> Outcome:
    others = [each for each in supervisor.journal.failures if not each.startswith(codes)]
    outcome = supervisor.judge(times, may_fail=True)
    outcome.complaints += others[:5]
    outcome.recovered = times if outcome.is_unhurt else 0
    return outcome


FAULTS = (
    Fault("full-disk", "the disk is full for a while", fill_disk, 6),
    Fault("failing-disk", "one write or sync in ten refused for a while", fail_now_and_then, 6),
)
