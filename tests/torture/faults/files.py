"""Files that are put in the place of the one that processes write to."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from hermes.state.sqlite.upkeep import exchange
from hermes_state import SessionDB
from tests.support.plainsql import plain
from tests.support.waiting import wait_until
from tests.torture.fault import Fault, Place
from tests.torture.forked import Forked
from tests.torture.outcome import Outcome
from tests.torture.ship import Ship

if TYPE_CHECKING:
    from _typeshed import TraceFunction

WRITERS = 3
EXCHANGES = 6
LONGEST_S = 0.25
PATIENCE_S = 20.0
LINES = 30
"""More than an exchange has."""


def settled_copy(path: Path) -> Path:
    """A copy of a store that nobody writes to now, as one file; nothing is left in its log, as before a restore."""
    wait_until(lambda: exchange.settle(path), "the log to be moved into the database")
    copy = path.with_name("copy.db")
    copy.unlink(missing_ok=True)
    with plain(path) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),)).fetchall()
    return copy


def exchange_file(place: Place) -> Outcome:
    """Put a copy in the place of the store, by the rules, again and again while processes write and read."""
    with Ship(place.store, place.random) as ship:
        for _ in range(WRITERS):
            ship.hire()
        for _ in range(EXCHANGES):
            ship.listen(place.random.uniform(0, LONGEST_S))
            with exchange.alone(place.store, PATIENCE_S):
                exchange.exchange(place.store, settled_copy(place.store))
        ship.listen(LONGEST_S)
        ship.kill_everybody()
        return ship.judge(EXCHANGES)


def kill_exchange(place: Place) -> Outcome:
    """Kill the process that puts the copy in its place, before any of its steps, while others write and read."""
    with Ship(place.store, place.random) as ship:
        ship.pin_the_log()
        for _ in range(WRITERS):
            ship.hire()
        for _ in range(EXCHANGES):
            ship.listen(place.random.uniform(0, LONGEST_S))
            left = place.random.randint(1, LINES)
            with Forked(lambda _, left=left: _exchange_and_die(place.store, left)) as victim:  # type: ignore[misc]
                assert victim.end() in (0, -signal.SIGKILL), "the exchange itself failed"
        ship.kill_everybody()
        # Whoever uses the store next completes what was begun.
        SessionDB(place.store).close()
        return ship.judge(EXCHANGES)


def _exchange_and_die(path: Path, left: int) -> None:
    """Exchange a file, and die before a line of that code."""

    def step(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        nonlocal left
        if frame.f_code.co_filename != exchange.__file__:
            return None
        left -= event == "line"
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return step

    with exchange.alone(path, PATIENCE_S):
        copy = settled_copy(path)
        sys.settrace(step)
        exchange.exchange(path, copy)
        sys.settrace(None)


FAULTS = (
    Fault("exchanged-file", "a copy put in the place of the file while processes write", exchange_file, 6),
    Fault("kill-exchange", "killed while it puts a copy in the place of the file", kill_exchange, 8),
)
