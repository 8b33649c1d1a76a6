"""The workloads of search, run on every store inside a worker process."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from bench import archive, corpus, questions
from bench.job import Job, Result
from bench.questions import Kind
from bench.store import Store, Unsupported
from bench.workloads import OpenStore, Workload

KIND_BUDGET_S = 10.0
LEAST_RUNS = 5


def build(open_store: OpenStore, job: Job) -> Result:
    """Fill the file that all searches share, one call per session; only the calls are timed."""
    spent = 0.0
    text_bytes = 0
    started = time.perf_counter()
    store = open_store(Path(job.path))
    spent += time.perf_counter() - started
    for part in archive.sessions(job.messages):
        text_bytes += sum(map(corpus.text_bytes, part.messages))
        started = time.perf_counter()
        store.create_session(part.session_id, part.source, part.user_id)
        store.fill(part.session_id, part.messages)
        spent += time.perf_counter() - started
    started = time.perf_counter()
    store.close()
    spent += time.perf_counter() - started
    return {"seconds": spent, "rate": job.messages / spent, "text": text_bytes / job.messages}


def ask(open_store: OpenStore, job: Job) -> Result:
    """Every kind of query in turn, on a store that was just opened; perhaps after more messages were added."""
    store = open_store(Path(job.path))
    if job.unindexed:
        _add(store, job)
    result: Result = {"unindexed": store.unindexed()}
    for kind in questions.read(Path(job.questions)):
        try:
            result.update(_ask_kind(store, kind, job.repeats))
        except Unsupported as reason:
            result[f"{kind.name}: unsupported"] = str(reason)
    store.close()
    return result


def first(open_store: OpenStore, job: Job) -> Result:
    """The first search of a process; the query depends on the member."""
    asked = questions.read(Path(job.questions))[0].questions
    question = asked[job.member % len(asked)]
    started = time.perf_counter()
    store = open_store(Path(job.path))
    opened = time.perf_counter()
    found = store.search(question)
    answered = time.perf_counter()
    store.close()
    return {
        "open": (opened - started) * 1000,
        "first": (answered - opened) * 1000,
        "results": found.results,
    }


WORKLOADS: dict[str, Workload] = {workload.__name__: workload for workload in (build, ask, first)}


def _add(store: Store, job: Job) -> None:
    for part in archive.later_sessions(job.unindexed, after=job.messages):
        store.create_session(part.session_id, part.source, part.user_id)
        store.fill(part.session_id, part.messages)


def _ask_kind(store: Store, kind: Kind, repeats: int) -> Result:
    """One search to warm up, then `repeats` searches, one query after the other."""
    store.search(kind.questions[-1])
    samples: list[float] = []
    cpu: list[float] = []
    counts: list[int] = []
    incomplete = 0
    give_up = time.perf_counter() + KIND_BUDGET_S
    while len(samples) < repeats and (len(samples) < LEAST_RUNS or time.perf_counter() < give_up):
        question = kind.questions[len(samples) % len(kind.questions)]
        cpu_before, started = time.process_time_ns(), time.perf_counter_ns()
        answer = store.search(question)
        ended, cpu_after = time.perf_counter_ns(), time.process_time_ns()
        samples.append((ended - started) / 1e6)
        cpu.append((cpu_after - cpu_before) / 1e6)
        counts.append(answer.results)
        incomplete += not answer.is_complete
    name = kind.name
    result: Result = {
        f"{name}: median": median(samples),
        f"{name}: worst": max(samples),
        f"{name}: cpu": median(cpu),
        f"{name}: fewest": min(counts),
        f"{name}: most": max(counts),
        f"{name}: runs": len(samples),
        f"{name}: incomplete": incomplete,
    }
    return result | {f"{name}: run {number + 1}": sample for number, sample in enumerate(samples)}
