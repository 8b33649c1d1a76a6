"""Lanes: how fast messages are accepted, turns are recorded and lanes are touched.

Every function measures one thing on a store of its own and returns figures; the caller chooses sizes and shows them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.job import Job, Result
from bench.store import Store
from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.lanes.types import ImportedLane, Intent, NewSession
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB

TEXT = (
    "a message of about one hundred and twenty characters, as people write them in chats, with a question at its end?"
)


@dataclass(frozen=True, slots=True)
class Rate:
    """How many operations a second, and the CPU time of one."""

    per_second: float
    cpu_ms: float


def key_of(number: int) -> str:
    """The key of a lane."""
    return f"agent:main:telegram:dm:{number}"


def fill_lanes(store: SessionDBProvider, count: int) -> None:
    """Create lanes in an empty store, each with a session."""
    store.lanes.import_once(
        [
            ImportedLane(
                key_of(number),
                NewSession(f"session-{number}", "telegram", user_id=str(number)),
                {"platform": "telegram", "origin": {"platform": "telegram", "chat_id": str(number)}},
            )
            for number in range(count)
        ]
    )


def measure_accept(store: SessionDBProvider, messages: int, lanes: int, threads: int) -> Rate:
    """Accept messages on several threads."""

    def work(first: int) -> int:
        for number in range(first, messages, threads):
            store.inbox.accept(
                key_of(number % lanes),
                {"text": TEXT},
                platform="telegram",
                chat_id=str(number % lanes),
                message_id=str(number),
                delivery_id=f"delivery-{number}",
            )
        return len(range(first, messages, threads))

    return _rate(work, threads)


def measure_turns(store: SessionDBProvider, threads: int) -> Rate:
    """Claim and finish a turn for every message that waits, each with a reply, on several threads."""

    def work(thread: int) -> int:
        done = 0
        while (claim := store.turns.claim_next(f"node-{thread}", choose=turn_of_one)) is not None:
            assert claim.turn_id is not None
            store.turns.finish(claim.lease, claim.turn_id, intents=[Intent(claim.turn_id, {"text": TEXT}, "telegram")])
            done += 1
        return done

    return _rate(work, threads)


def record(open_store: Callable[[Path], Store], job: Job) -> Result:
    """Accept messages and record a turn for each, on several threads."""
    del open_store
    with SessionDB(Path(job.path)) as store:
        accepted = measure_accept(store, job.messages, job.sessions, job.threads)
        turns = measure_turns(store, job.threads)
    return {"accept": accepted.per_second, "turns": turns.per_second}


def _rate(work: Callable[[int], int], threads: int) -> Rate:
    done: list[int] = []
    running = [threading.Thread(target=lambda n=n: done.append(work(n))) for n in range(threads)]
    before, cpu_before = time.perf_counter(), time.process_time()
    for each in running:
        each.start()
    for each in running:
        each.join()
    seconds, cpu_s = time.perf_counter() - before, time.process_time() - cpu_before
    total = max(1, sum(done))
    return Rate(total / seconds, cpu_s / total * 1000)
