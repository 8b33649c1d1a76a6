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
from tests.torture.fault import Fault, Trial
from tests.torture.faults.upgrades import missing_from
from tests.torture.forked import Forked
from tests.torture.journal import SHARED
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor
from tests.torture.words import word_of
from tests.upgrade import oldfiles

IMPORT = "from hermes_state import SessionDB"
OLDER = Peer("hermes-agent-0.13.0", "hermes-agent==0.13.0", IMPORT)
"""The last version that wrote schema 11."""
NEWER = Peer("hermes-agent", "hermes-agent==0.19.0", IMPORT, "hermes")
LONGEST_S = 0.5
READS = 5
STARTING_S = 1.5
STREAM = "peer"


def report(text: str) -> None:
    """Print why this takes long."""
    sys.stderr.write(f"{text}\n")


@cache
def install_once(peer: Peer) -> Environment:
    """Install a program once, next to the environments of the benchmarks."""
    return install(peer, ROOT / ".bench", report)


def start(environment: Environment, path: Path) -> Forked:
    """Start the program on a file; our source is not on its path."""
    hidden = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HERMES"))}
    home = str(path.parent)
    program = [str(environment.python), "-m", "tests.torture.peer", str(path), STREAM]
    variables = {**hidden, "PYTHONPATH": str(ROOT), "HOME": home, "HERMES_HOME": home}
    return Forked(lambda pipe: pipe.exec_program(program, variables))


def upgrade_under_it(trial: Trial) -> Outcome:
    """Upgrade a file of schema 11 while the program that created it writes to it."""
    environment = install_once(OLDER)
    if environment.python is None:
        return Outcome(not_run=environment.missing or "")
    with Supervisor(trial.store, trial.random, is_new=False) as supervisor:
        peer = _start_peer(supervisor, start(environment, trial.store))
        supervisor.listen(trial.random.uniform(0, LONGEST_S))
        supervisor.start_writer()
        supervisor.listen_until(lambda: any(not word.startswith(f"q{STREAM}") for word in supervisor.journal.shared))
        supervisor.listen(trial.random.uniform(0, LONGEST_S))
        assert not peer.is_silent, "the other program gave up"
        supervisor.kill_all_writers()
        return _judge(supervisor)


def read_beside_it(trial: Trial) -> Outcome:
    """Read a file of schema 22 while its own program writes to it, then import it."""
    environment = install_once(NEWER)
    if environment.python is None:
        return Outcome(not_run=environment.missing or "")
    theirs = trial.directory / "theirs.db"
    with Supervisor(trial.store, trial.random, is_new=False) as supervisor:
        peer = _start_peer(supervisor, start(environment, theirs))
        for _ in range(READS):
            supervisor.listen(trial.random.uniform(0, LONGEST_S / READS))
            with SessionDB(theirs) as db:
                assert db.read_only, "a file of another program was opened for writing"
                found = {word_of(str(row["content"])) for row in db.get_messages(SHARED)}
            assert supervisor.journal.shared <= found, "a message that the other program has stored is not to be seen"
        assert not peer.is_silent, "the other program gave up"
        supervisor.kill_all_writers()
        with SessionDB(trial.store) as db:
            db.import_database(theirs)
        return _judge(supervisor)


def open_together(trial: Trial) -> Outcome:
    """Open a file of schema 11 while another program upgrades it to schema 22: one of the two wins."""
    environment = install_once(NEWER)
    if environment.python is None:
        return Outcome(not_run=environment.missing or "")
    both = trial.directory / "both.db"
    expected = oldfiles.real(11, both)
    change(both, f"INSERT INTO sessions (id, source, started_at) VALUES ('{SHARED}', 'cli', 1)")
    with Supervisor(both, trial.random, is_new=False) as supervisor:
        supervisor.add_process(start(environment, both)).wake()
        supervisor.listen(trial.random.uniform(0, STARTING_S))
        supervisor.start_writer()
        supervisor.listen(STARTING_S)
        supervisor.kill_all_writers()
        with SessionDB(both) as db:
            is_ours = not db.read_only
        if not is_ours:
            with SessionDB(trial.store) as db:
                db.import_database(both)
            supervisor.path = trial.store
        outcome = _judge(supervisor)
    outcome.lost += missing_from(both, expected)
    outcome.acknowledged += len(expected.all_messages())
    outcome.notes = ["ours was first" if is_ours else "the other was first"]
    return outcome


def _start_peer(supervisor: Supervisor, peer: Forked) -> Forked:
    supervisor.add_process(peer)
    supervisor.listen_until(lambda: supervisor.journal.ready == 1)
    peer.wake()
    return peer


def _judge(supervisor: Supervisor) -> Outcome:
    outcome = supervisor.judge(1, may_fail=True)
    outcome.notes += [f"it failed once: {without_places(each)}" for each in supervisor.journal.failures[:1]]
    return outcome


FAULTS = (
    Fault("hermes-agent-both", "hermes-agent 0.19.0 and ours open a file of schema 11 at once", open_together, 4),
    Fault("hermes-agent-0.13", "hermes-agent 0.13.0 writes while its file is upgraded", upgrade_under_it, 4),
    Fault("hermes-agent-0.19", "hermes-agent 0.19.0 writes while its file is read and imported", read_beside_it, 2),
)
