"""A machine that loses its power."""

from __future__ import annotations

import time

from hermes_state import SessionDB
from tests.torture import writers
from tests.torture.disk import Disk
from tests.torture.fault import Fault, Trial
from tests.torture.forked import Forked, Pipe
from tests.torture.journal import SHARED, Journal
from tests.torture.judge import judge
from tests.torture.outcome import Outcome
from tests.torture.power_loss import Entry, Recorder, after_power_cut, lines_sent, read_record
from tests.torture.supervisor import checkpoint_and_index_often
from tests.torture.words import letters

THREADS = 3
RECORDED_S = (0.2, 0.6)
CUTS = 8


def cut_power(trial: Trial) -> Outcome:
    """Record a writer's file accesses, then rebuild the files as a power failure at a random moment leaves them."""
    with SessionDB(trial.store) as db:
        db.create_session(SHARED, "cli")
    before, record = {trial.store.name: trial.store.read_bytes()}, trial.directory / "record"
    is_busy, seed = trial.random.random() < 0.5, trial.random.getrandbits(32)

    def work(_: Pipe) -> None:
        if is_busy:
            checkpoint_and_index_often()
        recorder = Recorder(record)
        disk = Disk(recorder)
        writers.write(trial.store, [letters(number, 4) for number in range(THREADS)], seed, recorder.record_line)
        del disk

    with Forked(work):
        time.sleep(trial.random.uniform(*RECORDED_S))
    outcome, whole = Outcome(), list(read_record(record))
    for _ in range(CUTS):
        outcome.add(_judge_cut(trial, before, whole))
    return outcome


def _judge_cut(trial: Trial, before: dict[str, bytes], record: list[tuple[Entry, bytes]]) -> Outcome:
    until = trial.random.randint(0, len(record))
    directory = trial.directory / f"cut-{until}"
    directory.mkdir(exist_ok=True)
    for name, content in after_power_cut(before, record[:until], trial.random).items():
        (directory / name).write_bytes(content)
    journal = Journal()
    for line in lines_sent(record[:until]):
        journal.record(line)
    outcome = judge(directory / trial.store.name, journal, trial.random)
    outcome.times = 1
    outcome.recovered = int(outcome.is_unhurt)
    return outcome


FAULTS = (Fault("power-cut", "the power cut: what was not synced is lost or torn", cut_power, 10),)
