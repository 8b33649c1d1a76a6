"""Other programs that write to the file while ours opens it: hermes-agent of two versions, as a black box."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from bench.peers import Environment, Peer, install
from bench.processes import ROOT
from bench.remarks import without_places
from hermes_state import SessionDB
from tests.support.plainsql import change
from tests.torture.fault import Fault, Place
from tests.torture.faults.upgrades import missing_from
from tests.torture.forked import Forked
from tests.torture.journal import SHARED
from tests.torture.outcome import Outcome
from tests.torture.ship import Ship
from tests.torture.words import word_of
from tests.upgrade import oldfiles

IMPORT = "from hermes_state import SessionDB"
OLDER = Peer("hermes-agent-0.13.0", "hermes-agent==0.13.0", IMPORT)
"""The last that wrote schema 11."""
NEWER = Peer("hermes-agent", "hermes-agent==0.19.0", IMPORT, "hermes")
LONGEST_S = 0.5
READS = 5
STARTING_S = 1.5
STREAM = "peer"


def say(text: str) -> None:
    """Tell the person at the terminal why this takes long."""
    sys.stderr.write(f"{text}\n")


@cache
def installed(peer: Peer) -> Environment:
    """The environment of a program, made once and kept beside those of the benchmarks."""
    return install(peer, ROOT / ".bench", say)


def start(environment: Environment, path: Path) -> Forked:
    """The program, at work on a file; it never sees our source."""
    hidden = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HERMES"))}
    home = str(path.parent)
    program = [str(environment.python), "-m", "tests.torture.peer", str(path), STREAM]
    variables = {**hidden, "PYTHONPATH": str(ROOT), "HOME": home, "HERMES_HOME": home}
    return Forked(lambda voice: voice.become(program, variables))


def upgrade_under_it(place: Place) -> Outcome:
    """Bring a file of schema 11 to the present while the program that made it goes on writing to it."""
    environment = installed(OLDER)
    if environment.python is None:
        return Outcome(not_run=environment.missing or "")
    with Ship(place.store, place.random, is_new=False) as ship:
        peer = _at_work(ship, start(environment, place.store))
        ship.listen(place.random.uniform(0, LONGEST_S))
        ship.hire()
        ship.listen_until(lambda: any(not word.startswith(f"q{STREAM}") for word in ship.journal.shared))
        ship.listen(place.random.uniform(0, LONGEST_S))
        assert not peer.is_silent, "the other program gave up"
        ship.kill_everybody()
        return _judged(ship)


def read_beside_it(place: Place) -> Outcome:
    """Read a file of schema 22 while the program it belongs to writes to it, then import what it has stored."""
    environment = installed(NEWER)
    if environment.python is None:
        return Outcome(not_run=environment.missing or "")
    theirs = place.directory / "theirs.db"
    with Ship(place.store, place.random, is_new=False) as ship:
        peer = _at_work(ship, start(environment, theirs))
        for _ in range(READS):
            ship.listen(place.random.uniform(0, LONGEST_S / READS))
            with SessionDB(theirs) as db:
                assert db.read_only, "a file of another program was opened for writing"
                found = {word_of(str(row["content"])) for row in db.get_messages(SHARED)}
            assert ship.journal.shared <= found, "a message that the other program has stored is not to be seen"
        assert not peer.is_silent, "the other program gave up"
        ship.kill_everybody()
        with SessionDB(place.store) as db:
            db.import_database(theirs)
        return _judged(ship)


def open_together(place: Place) -> Outcome:
    """Open a file of schema 11 together with a program that wants to bring it to schema 22: one of the two does."""
    environment = installed(NEWER)
    if environment.python is None:
        return Outcome(not_run=environment.missing or "")
    both = place.directory / "both.db"
    expected = oldfiles.real(11, both)
    change(both, f"INSERT INTO sessions (id, source, started_at) VALUES ('{SHARED}', 'cli', 1)")
    with Ship(both, place.random, is_new=False) as ship:
        ship.take_aboard(start(environment, both)).tell()
        ship.listen(place.random.uniform(0, STARTING_S))
        ship.hire()
        ship.listen(STARTING_S)
        ship.kill_everybody()
        with SessionDB(both) as db:
            is_ours = not db.read_only
        if not is_ours:
            with SessionDB(place.store) as db:
                db.import_database(both)
            ship.path = place.store
        outcome = _judged(ship)
    outcome.lost += missing_from(both, expected)
    outcome.acknowledged += len(expected.all_messages())
    outcome.notes = ["ours was first" if is_ours else "the other was first"]
    return outcome


def _at_work(ship: Ship, peer: Forked) -> Forked:
    ship.take_aboard(peer)
    ship.listen_until(lambda: ship.journal.ready == 1)
    peer.tell()
    return peer


def _judged(ship: Ship) -> Outcome:
    outcome = ship.judge(1, may_fail=True)
    outcome.notes += [f"it failed once: {without_places(each)}" for each in ship.journal.failures[:1]]
    return outcome


FAULTS = (
    Fault("hermes-agent-both", "hermes-agent 0.19.0 and ours open a file of schema 11 at once", open_together, 4),
    Fault("hermes-agent-0.13", "hermes-agent 0.13.0 writes while its file is upgraded", upgrade_under_it, 4),
    Fault("hermes-agent-0.19", "hermes-agent 0.19.0 writes while its file is read and imported", read_beside_it, 2),
)
