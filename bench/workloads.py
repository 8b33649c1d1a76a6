"""The workloads, each written once and run on every store, inside a worker process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from threading import Barrier, Thread

from bench import corpus
from bench.corpus import Message, Session
from bench.job import Job, Result
from bench.store import Calls, Page, Store, Unsupported

OpenStore = Callable[[Path], Store]
Workload = Callable[[OpenStore, Job], Result]
Wait = Callable[[], None]

MESSAGES_PER_SESSION = 500
FILTERED_SOURCE = "telegram"
LIST_BUDGET_S = 5.0


def append(open_store: OpenStore, job: Job) -> Result:
    """One call per message, from one thread or from several with a session each."""
    store = open_store(Path(job.path))
    shares = [_spread(store, member, job.messages // job.threads) for member in range(job.threads)]
    _settle()
    if job.threads == 1:
        started = time.perf_counter()
        parts = [store.append_each(shares[0])]
    else:
        parts, started = _append_in_threads(store, shares)
    return _settle_and_close(store, parts, started)


def append_messages(open_store: OpenStore, job: Job) -> Result:
    """Several messages per call."""
    store = open_store(Path(job.path))
    share = _spread(store, 0, job.messages)
    batches = [
        (share[start][0], [message for _, message in share[start : start + job.batch]])
        for start in range(0, len(share), job.batch)
    ]
    _settle()
    started = time.perf_counter()
    calls = store.append_batches(batches)
    return _settle_and_close(store, [calls], started, messages_per_call=job.batch)


def prepare(open_store: OpenStore, job: Job) -> Result:
    """Create the file and the sessions that several processes will share."""
    store = open_store(Path(job.path))
    for session in corpus.sessions(job.sessions):
        store.create_session(session.session_id, session.source)
    store.close()
    return {}


def member(open_store: OpenStore, job: Job, wait_for_start: Wait = lambda: None) -> Result:
    """One of several processes on one file, each with its own session."""
    session = list(corpus.sessions(job.sessions))[job.member]
    store = open_store(Path(job.path))
    share = [(session.session_id, message) for message in session.messages(job.messages)]
    _settle()
    wait_for_start()
    started = time.monotonic()
    calls = store.append_each(share)
    store.close()
    ended = time.monotonic()
    result = _rate([calls], ended - started)
    return {**result, "started": started, "ended": ended}


def verify(open_store: OpenStore, job: Job) -> Result:
    """Count the messages that several processes stored in the file."""
    store = open_store(Path(job.path))
    found = sum(store.count(session.session_id) for session in corpus.sessions(job.sessions))
    store.close()
    return {"messages": found}


def load(open_store: OpenStore, job: Job) -> Result:
    """Read one long conversation again and again."""
    session = next(corpus.sessions(1))
    store = open_store(Path(job.path))
    store.create_session(session.session_id, session.source)
    store.fill(session.session_id, session.messages(job.messages))
    store.settle()  # a file that was just filled is indexed at the same time
    store.close()
    store = open_store(Path(job.path))
    loaded = store.load(session.session_id)
    if loaded < job.messages:
        raise RuntimeError(f"{loaded} of {job.messages} messages came back")
    result: Result = {"ms": _median_ms(lambda: store.load(session.session_id), job.repeats)}
    store.close()
    return result


def list_sessions(open_store: OpenStore, job: Job) -> Result:
    """Read pages of a long session list: two orders, with and without a filter, at its head and deep inside."""
    store = open_store(Path(job.path))
    if type(store).list_page is Store.list_page:
        raise Unsupported("no session list")
    _fill(store, job)
    store.close()
    store = open_store(Path(job.path))
    result: Result = {}
    for order in ("start", "activity"):
        for source in (None, FILTERED_SOURCE):
            for place in ("first", "deep"):
                page = Page(by_activity=order == "activity", source=source)
                if place == "deep":
                    page = _deep_page(store, page, job.sessions // (2 if source is None else 8))
                if len(store.list_page(page)) != page.limit:
                    raise RuntimeError(f"the {place} page by {order} is not full")
                name = f"{order} {'filtered' if source else 'all'} {place}"
                result[name] = _median_ms(lambda page=page: store.list_page(page), job.repeats)  # type: ignore[misc]
    store.close()
    return result


def fill(open_store: OpenStore, job: Job) -> Result:
    """Fill a file and return how much text is in it."""
    store = open_store(Path(job.path))
    text_bytes = _fill(store, job)
    store.settle()
    store.close()
    return {"text": text_bytes / (job.messages // job.sessions * job.sessions)}


WORKLOADS: dict[str, Workload] = {
    workload.__name__: workload
    for workload in (append, append_messages, prepare, member, verify, load, list_sessions, fill)
}


def _spread(store: Store, member: int, count: int) -> list[tuple[str, Message]]:
    """`count` messages in new sessions of the member, in the order of a person who works on one after the other."""
    share: list[tuple[str, Message]] = []
    for part, start in enumerate(range(0, count, MESSAGES_PER_SESSION)):
        session = Session(member * 1_000 + part, f"20260101_{member:06d}_{part:08x}", "cli")
        store.create_session(session.session_id, session.source)
        size = min(MESSAGES_PER_SESSION, count - start)
        share.extend((session.session_id, message) for message in session.messages(size))
    return share


def _append_in_threads(store: Store, shares: list[list[tuple[str, Message]]]) -> tuple[list[Calls], float]:
    barrier = Barrier(len(shares) + 1)
    parts: list[Calls] = []

    def work(share: list[tuple[str, Message]]) -> None:
        barrier.wait()
        parts.append(store.append_each(share))

    threads = [Thread(target=work, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    barrier.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    return parts, started


def _fill(store: Store, job: Job) -> int:
    """Fill the sessions, with their last activity in another order than their start; return the bytes of text."""
    per_session = job.messages // job.sessions
    activity = list(range(job.sessions))
    Random(corpus.SEED).shuffle(activity)
    base = time.time()
    text_bytes = 0
    for session in corpus.sessions(job.sessions):
        messages = session.messages(per_session)
        for position, message in enumerate(messages):
            message["timestamp"] = base + activity[session.number] + position / 1_000
            text_bytes += corpus.text_bytes(message)
        store.create_session(session.session_id, session.source)
        store.fill(session.session_id, messages)
    return text_bytes


def _deep_page(store: Store, page: Page, depth: int) -> Page:
    if not store.has_keyset:
        return Page(page.by_activity, page.source, offset=depth)
    cursor: str | None = None
    for _ in range(0, depth, page.limit):
        cursor = store.list_page(Page(page.by_activity, page.source, cursor))[-1]
    return Page(page.by_activity, page.source, cursor)


def _settle() -> None:
    """Keep the garbage collector from walking the corpus inside the timed window."""
    gc.collect()
    gc.freeze()


def _settle_and_close(store: Store, parts: list[Calls], started: float, messages_per_call: int = 1) -> Result:
    """The rate until all is acknowledged, and until all is indexed as well."""
    acknowledged_s = time.perf_counter() - started
    store.settle()
    indexed_s = time.perf_counter() - started
    store.close()
    result = _rate(parts, acknowledged_s, messages_per_call)
    return {**result, "indexed": float(result["rate"]) * acknowledged_s / indexed_s}


def _rate(parts: list[Calls], seconds: float, messages_per_call: int = 1) -> Result:
    nanoseconds = sorted(value for part in parts for value in part.nanoseconds)
    failures = [failure for part in parts for failure in part.failures]
    stored = (len(nanoseconds) - len(failures)) * messages_per_call
    result: Result = {
        "rate": stored / seconds,
        "stored": stored,
        "failures": len(failures),
        "p50": nanoseconds[len(nanoseconds) // 2] / 1e6,
        "p99": nanoseconds[len(nanoseconds) * 99 // 100] / 1e6,
        "max": nanoseconds[-1] / 1e6,
    }
    if failures:
        result["first_failure"] = failures[0]
    return result


def _median_ms(call: Callable[[], object], repeats: int) -> float:
    samples: list[float] = []
    give_up = time.perf_counter() + LIST_BUDGET_S
    while len(samples) < repeats and (len(samples) < 5 or time.perf_counter() < give_up):
        started = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - started) / 1e6)
    return median(samples)
