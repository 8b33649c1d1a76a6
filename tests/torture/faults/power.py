"""A machine that loses its power."""

from __future__ import annotations

import time

from hermes_state import SessionDB
from tests.torture import crew
from tests.torture.disk import Disk
from tests.torture.fault import Fault, Place
from tests.torture.forked import Forked, Voice
from tests.torture.journal import SHARED, Journal
from tests.torture.judge import judge
from tests.torture.outcome import Outcome
from tests.torture.platter import Entry, Recorder, after_power_cut, recorded, said
from tests.torture.ship import keep_house_often
from tests.torture.words import letters

THREADS = 3
RECORDED_S = (0.2, 0.6)
CUTS = 8


def cut_power(place: Place) -> Outcome:
    """Record what a writer does to its files, and make them anew as they are when the power fails at some moment."""
    with SessionDB(place.store) as db:
        db.create_session(SHARED, "cli")
    before, record = {place.store.name: place.store.read_bytes()}, place.directory / "record"
    is_busy, seed = place.random.random() < 0.5, place.random.getrandbits(32)

    def work(_: Voice) -> None:
        if is_busy:
            keep_house_often()
        recorder = Recorder(record)
        disk = Disk(recorder)
        crew.write(place.store, [letters(number, 4) for number in range(THREADS)], seed, recorder.say)
        del disk

    with Forked(work):
        time.sleep(place.random.uniform(*RECORDED_S))
    outcome, whole = Outcome(), list(recorded(record))
    for _ in range(CUTS):
        outcome.add(_judge_cut(place, before, whole))
    return outcome


def _judge_cut(place: Place, before: dict[str, bytes], record: list[tuple[Entry, bytes]]) -> Outcome:
    until = place.random.randint(0, len(record))
    directory = place.directory / f"cut-{until}"
    directory.mkdir(exist_ok=True)
    for name, content in after_power_cut(before, record[:until], place.random).items():
        (directory / name).write_bytes(content)
    journal = Journal()
    for line in said(record[:until]):
        journal.hear(line)
    outcome = judge(directory / place.store.name, journal, place.random)
    outcome.times = 1
    outcome.recovered = int(outcome.is_unhurt)
    return outcome


FAULTS = (Fault("power-cut", "the power cut: what was not synced is lost or torn", cut_power, 10),)
