"""Many writers at once, and one process that blocks all of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from hermes.state.engine import Transaction
from hermes.state.messages.appending import add_messages
from hermes.state.messages.drafts import draft_message
from hermes.state.owner import EVERYBODY
from hermes.state.sqlite.engine import SqliteEngine
from hermes.state.sqlite.files.writer_lock import WriterLock
from tests.support.plainsql import plain
from tests.torture.fault import Fault, Trial
from tests.torture.forked import Forked, Pipe, next_line
from tests.torture.journal import SHARED
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor
from tests.torture.words import COMMON

WRITERS = 16
HELD_S, HELD_QUICKLY_S = 20.0, 2.0
EACH = 5
PROCESSES = 8
MANY = 250
HELD = "held"


def hold_lock(path: Path, pipe: Pipe) -> None:
    """Hold the writer lock like a slow process of ours."""
    lock = WriterLock(path)
    lock.acquire()
    pipe.send_line(HELD)
    pipe.receive(2 * HELD_S)
    lock.close()


def hold_transaction(path: Path, pipe: Pipe) -> None:
    """Hold a transaction like a slow program that does not use our lock."""
    with plain(path) as connection, connection:
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1)",
            (SHARED, f"foreign {COMMON}"),
        ).fetchall()
        pipe.send_line(HELD)
        pipe.receive(2 * HELD_S)


def freeze_in_transaction(path: Path, pipe: Pipe) -> None:
    """Stop this process in the middle of a write."""
    engine = SqliteEngine(path)

    def work(tx: Transaction) -> None:
        add_messages(tx, SHARED, [draft_message({"role": "user", "content": f"frozen {COMMON}"}, 1.0)], EVERYBODY)
        pipe.send_line(HELD)
        os.kill(os.getpid(), signal.SIGSTOP)

    engine.write(work)
    engine.close()


def _hold(trial: Trial, hold: Callable[[Path, Pipe], None], word: str | None) -> Outcome:
    """Let sixteen writers wait for one process; its own message must be stored too."""
    with Supervisor(trial.store, trial.random) as supervisor:
        supervisor.start_waiting_writers(WRITERS, EACH)
        with Forked(lambda pipe: hold(trial.store, pipe)) as holder:
            assert next_line(holder) == HELD
            supervisor.release_writers()
            supervisor.listen(HELD_QUICKLY_S if trial.is_quick else HELD_S)
            assert not supervisor.journal.shared, "a message was stored while the store was locked"
            holder.wake()
            holder.signal(signal.SIGCONT)
            supervisor.finish()
            assert holder.end() == 0
        stored = len(supervisor.journal.shared) // EACH
        supervisor.journal.shared |= {word} if word else set()
        outcome = supervisor.judge(1)
    outcome.notes.append(f"{stored} of {WRITERS} writers stored what they wanted to")
    return outcome


def hold_our_lock(trial: Trial) -> Outcome:
    """A process of ours holds the writer lock."""
    return _hold(trial, hold_lock, None)


def hold_foreign_transaction(trial: Trial) -> Outcome:
    """Another program holds SQLite's lock."""
    return _hold(trial, hold_transaction, "foreign")


def freeze_a_writer(trial: Trial) -> Outcome:
    """A process of ours is frozen in the middle of a transaction, and thawed later."""
    return _hold(trial, freeze_in_transaction, "frozen")


def write_together(trial: Trial) -> Outcome:
    """Eight processes append as fast as they can; the slowest call is measured."""
    with Supervisor(trial.store, trial.random) as supervisor:
        supervisor.start_waiting_writers(PROCESSES, 50 if trial.is_quick else MANY)
        supervisor.release_writers()
        supervisor.finish()
        return supervisor.judge(PROCESSES)


FAULTS = (
    Fault("eight-writers", "8 processes append at once", write_together, 3),
    Fault("lock-held", "the writer lock held for 20 s while 16 processes write", hold_our_lock, 1),
    Fault("lock-foreign", "a foreign transaction held for 20 s while 16 processes write", hold_foreign_transaction, 1),
    Fault("lock-frozen", "a writer frozen in its transaction for 20 s while 16 processes write", freeze_a_writer, 1),
)
