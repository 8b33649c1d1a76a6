"""Stores that are opened and closed very often."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path

from hermes_state import SessionDB
from tests.torture.fault import Fault, Trial
from tests.torture.forked import Forked, Pipe, all_lines
from tests.torture.journal import SHARED, Journal
from tests.torture.judge import judge
from tests.torture.outcome import Outcome
from tests.torture.words import COMMON, nth_word
from tests.torture.writers import PATIENCE_S

OPENS, OPENS_QUICKLY = 10_000, 500
FIRST = 0.2
"""The share of opens after which a process should need no more memory."""
GROWTH = 2 << 20
STREAM = "open"
LIMIT_S = 600.0
MEMORY = Path("/proc/self/statm")


def memory() -> int:
    """How many bytes of memory this process uses; where the system does not report, the most it has used."""
    if MEMORY.exists():
        return int(MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def open_often(trial: Trial) -> Outcome:
    """Open and close a store for reading, writing and searching; descriptors, threads and memory do not grow."""
    times = OPENS_QUICKLY if trial.is_quick else OPENS
    with Forked(lambda pipe: _open_often(trial.store, times, pipe)) as opener:
        held, threads, grown, stored = map(int, all_lines(opener, LIMIT_S))
    journal = Journal()
    journal.shared = {nth_word(STREAM, number) for number in range(stored)}
    outcome = judge(trial.store, journal, trial.random)
    outcome.complaints += [f"{held} descriptors more than before"] * (held > 0)
    outcome.complaints += [f"{threads} threads more than before"] * (threads > 0)
    outcome.complaints += [f"{grown} bytes of memory more than before"] * (grown > GROWTH)
    outcome.times = times
    outcome.recovered = times if outcome.is_unhurt else 0
    outcome.notes.append(f"{grown / 1024:,.0f} KB of memory more after {times:,} opens than after {times * FIRST:,.0f}")
    return outcome


def _open_often(path: Path, times: int, pipe: Pipe) -> None:
    with SessionDB(path) as db:
        db.create_session(SHARED, "cli")
    stored = held = threads = size = 0
    for number in range(times):
        if number == int(times * FIRST):
            held, threads, size = len(os.listdir("/dev/fd")), threading.active_count(), memory()
        with SessionDB(path, read_only=number % 5 == 1) as db:
            if number % 5 == 2:
                db.append_message(SHARED, "user", f"{nth_word(STREAM, stored)} {COMMON}")
                stored += 1
            elif number % 5 == 3:
                assert stored == 0 or len(db.search_messages(nth_word(STREAM, stored - 1), budget_s=PATIENCE_S)) == 1
            else:
                assert db.message_count(SHARED) == stored
    for each in (len(os.listdir("/dev/fd")) - held, threading.active_count() - threads, memory() - size, stored):
        pipe.send_line(str(each))


FAULTS = (Fault("opens", "opened and closed 10 000 times by one process", open_often, 1),)
