"""Many writers at once, and somebody who holds up all of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from hermes.state.drafts import draft
from hermes.state.engine import Transaction
from hermes.state.messages import add_messages
from hermes.state.owner import EVERYBODY
from hermes.state.sqlite.engine import SqliteEngine
from hermes.state.sqlite.lock import WriterLock
from tests.support.plainsql import plain
from tests.torture.fault import Fault, Place
from tests.torture.forked import Forked, Voice, next_word
from tests.torture.journal import SHARED
from tests.torture.outcome import Outcome
from tests.torture.ship import Ship
from tests.torture.words import COMMON

WRITERS = 16
HELD_S, HELD_QUICKLY_S = 20.0, 2.0
EACH = 5
PROCESSES = 8
MANY = 250
HELD = "held"


def hold_lock(path: Path, voice: Voice) -> None:
    """Be a process of ours that takes long over a write."""
    lock = WriterLock(path)
    lock.acquire()
    voice.say(HELD)
    voice.hear(2 * HELD_S)
    lock.close()


def hold_transaction(path: Path, voice: Voice) -> None:
    """Be a program that knows nothing of our lock and takes long over a write."""
    with plain(path) as connection, connection:
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1)",
            (SHARED, f"foreign {COMMON}"),
        ).fetchall()
        voice.say(HELD)
        voice.hear(2 * HELD_S)


def freeze_in_transaction(path: Path, voice: Voice) -> None:
    """Be a process of ours that is stopped in the middle of a write."""
    engine = SqliteEngine(path)

    def work(tx: Transaction) -> None:
        add_messages(tx, SHARED, [draft({"role": "user", "content": f"frozen {COMMON}"}, 1.0)], EVERYBODY)
        voice.say(HELD)
        os.kill(os.getpid(), signal.SIGSTOP)

    engine.write(work)
    engine.close()


def _hold_up(place: Place, hold: Callable[[Path, Voice], None], word: str | None) -> Outcome:
    """Let sixteen writers wait for one holder; whatever it wrote in the end is there too."""
    with Ship(place.store, place.random) as ship:
        ship.line_up(WRITERS, EACH)
        with Forked(lambda voice: hold(place.store, voice)) as holder:
            assert next_word(holder) == HELD
            ship.let_go()
            ship.listen(HELD_QUICKLY_S if place.is_quick else HELD_S)
            assert not ship.journal.shared, "somebody wrote while the store was held"
            holder.tell()
            holder.signal(signal.SIGCONT)
            ship.finish()
            assert holder.end() == 0
        stored = len(ship.journal.shared) // EACH
        ship.journal.shared |= {word} if word else set()
        outcome = ship.judge(1)
    outcome.notes.append(f"{stored} of {WRITERS} writers stored what they wanted to")
    return outcome


def hold_our_lock(place: Place) -> Outcome:
    """A process of ours holds the writer lock."""
    return _hold_up(place, hold_lock, None)


def hold_foreign_transaction(place: Place) -> Outcome:
    """Another program holds SQLite's lock."""
    return _hold_up(place, hold_transaction, "foreign")


def freeze_a_writer(place: Place) -> Outcome:
    """A process of ours is frozen in the middle of a transaction, and thawed later."""
    return _hold_up(place, freeze_in_transaction, "frozen")


def write_together(place: Place) -> Outcome:
    """Eight processes append as fast as they can; what counts is the slowest call."""
    with Ship(place.store, place.random) as ship:
        ship.line_up(PROCESSES, 50 if place.is_quick else MANY)
        ship.let_go()
        ship.finish()
        return ship.judge(PROCESSES)


FAULTS = (
    Fault("eight-writers", "8 processes append at once", write_together, 3),
    Fault("lock-held", "the writer lock held for 20 s while 16 processes write", hold_our_lock, 1),
    Fault("lock-foreign", "a foreign transaction held for 20 s while 16 processes write", hold_foreign_transaction, 1),
    Fault("lock-frozen", "a writer frozen in its transaction for 20 s while 16 processes write", freeze_a_writer, 1),
)
