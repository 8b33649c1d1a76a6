"""Disks that are full, or that fail now and then."""

from __future__ import annotations

from mmap import mmap
from pathlib import Path
from random import Random

import apsw

from hermes_state import StoreFull, StoreUnavailable
from tests.torture.disk import Access, Disk, Mishap
from tests.torture.fault import Fault, Place
from tests.torture.mounts import small_disk
from tests.torture.outcome import Outcome
from tests.torture.ship import Ship

SIZE = 64 << 20
FILLS = 4
FAILURES = 6
LONGEST_S = 0.3
WRITERS = 2
ODDS = 0.1
CODES = (apsw.SQLITE_FULL, apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC)


def fill_disk(place: Place) -> Outcome:
    """Fill the file system while processes write to it, and free it again while they go on."""
    with small_disk(place.directory, SIZE) as refused:
        if refused:
            return Outcome(not_run=refused)
        with Ship(place.store, place.random) as ship:
            for _ in range(WRITERS):
                ship.hire()
            for _ in range(FILLS):
                ship.listen(place.random.uniform(0.05, LONGEST_S))
                _fill(place.directory / "ballast")
                known = len(ship.journal.failures)
                ship.listen_until(lambda known=known: len(ship.journal.failures) > known)  # type: ignore[misc]
                ship.listen(place.random.uniform(0, LONGEST_S))
                (place.directory / "ballast").unlink()
                _await_progress(ship)
            ship.kill_everybody()
            return _judged(ship, FILLS, StoreFull.code)


def _fill(ballast: Path) -> None:
    """Leave no room at all."""
    with ballast.open("wb", buffering=0) as file:
        for amount in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(amount)):
                    continue
            except OSError:
                continue


def fail_now_and_then(place: Place) -> Outcome:
    """Refuse one write, sync or truncation in ten for a while, as a full or failing disk does, then no more."""
    with Ship(place.store, place.random) as ship:
        is_failing = mmap(-1, 1)
        for _ in range(WRITERS):
            mishap = _refusal(is_failing, Random(place.random.getrandbits(32)))
            ship.hire(prepare=lambda mishap=mishap: Disk(mishap))  # type: ignore[misc]
        for _ in range(FAILURES):
            ship.listen(place.random.uniform(0, LONGEST_S))
            is_failing[0] = 1
            known = len(ship.journal.failures)
            ship.listen_until(lambda known=known: len(ship.journal.failures) > known)  # type: ignore[misc]
            ship.listen(place.random.uniform(0, LONGEST_S))
            is_failing[0] = 0
            _await_progress(ship)
        ship.kill_everybody()
        return _judged(ship, FAILURES, StoreFull.code, StoreUnavailable.code)


def _refusal(is_failing: mmap, random: Random) -> Mishap:
    def refuse(_: Access) -> None:
        if is_failing[0] and random.random() < ODDS:
            raise apsw.exception_for(random.choice(CODES))

    return refuse


def _await_progress(ship: Ship) -> None:
    known = len(ship.journal.shared)
    ship.listen_until(lambda: len(ship.journal.shared) > known)


def _judged(ship: Ship, times: int, *codes: str) -> Outcome:
    others = [each for each in ship.journal.failures if not each.startswith(codes)]
    outcome = ship.judge(times, may_fail=True)
    outcome.complaints += others[:5]
    outcome.recovered = times if outcome.is_unhurt else 0
    return outcome


FAULTS = (
    Fault("full-disk", "the disk is full for a while", fill_disk, 6),
    Fault("failing-disk", "one write or sync in ten refused for a while", fail_now_and_then, 6),
)
