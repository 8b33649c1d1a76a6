"""A busy node: many lanes, many turns at a time, and messages that arrive meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path

from bench.gateway.calls import Calls, counted_calls
from bench.gateway.guarding import Refusals, counted_refusals
from bench.gateway.samples import QuietProcess, Samples, Stopwatch, sample_lag
from bench.gateway.synthetic import SyntheticNode, inbound, write_settings
from bench.job import Result

OFFERED_PER_S = 250.0
"""How many messages arrive in a second."""
CALLERS = 32
"""How many messages are stored at a time when they come as fast as possible."""


async def measure_load(
    home: Path, *, lanes: int, turns: int, seconds: float, turn_s: float, dsn: str | None = None
) -> Result:
    """Serve messages at a steady rate while turns run, then as many as possible."""
    write_settings(home, max_turns=turns, dsn=dsn)
    node = SyntheticNode(home, turn_s=turn_s)
    numbers = itertools.count(1)
    with counted_calls() as calls, counted_refusals() as refusals:
        await node.start()
        try:
            _check_guard(node, refusals)
            for lane in range(lanes):
                await node.intake.receive(inbound(lane, next(numbers)))
            await _until_busy(node, turns)
            steady = await _steady(node, calls, lanes, numbers, seconds)
            most = await _most(node, lanes, numbers, seconds / 2)
        finally:
            node.expel()
            await node.stop()
    return {**steady, **most, "refused": refusals.count - 1, "first_refused": refusals.first}


def _check_guard(node: SyntheticNode, refusals: Refusals) -> None:
    """Make one store call on the event loop: the guard must see it."""
    try:
        node.db.store.lanes.count()
    except RuntimeError:
        refusals.first = ""
        return
    raise RuntimeError("the guard did not notice a store call on the event loop")


async def _until_busy(node: SyntheticNode, turns: int) -> None:
    async with asyncio.timeout(60.0):
        while len(node.running_turns()) < turns:
            await asyncio.sleep(0.05)


async def _steady(
    node: SyntheticNode, calls: Calls, lanes: int, numbers: itertools.count[int], seconds: float
) -> Result:
    """Let messages arrive at a steady rate."""
    lag, admission, running = Samples(), Samples(), []
    loop = asyncio.get_running_loop()
    accepted, tasks = 0, set[asyncio.Task[None]]()

    async def receive(number: int) -> None:
        nonlocal accepted
        began = loop.time()
        result = await node.intake.receive(inbound(number % lanes, number))
        admission.add(loop.time() - began)
        accepted += result.state == "accepted"

    sampler, quiet = asyncio.create_task(sample_lag(lag)), QuietProcess()
    with quiet.beside():
        await asyncio.sleep(0.5)
        calls.clear()
        lag.values.clear()
        before, watch = dict(node.parts.counters), Stopwatch()
        sent = node.adapter.sent
        for step in itertools.count():
            due = step / OFFERED_PER_S
            if due >= seconds:
                break
            if due > watch.seconds:
                await asyncio.sleep(due - watch.seconds)
            task = asyncio.create_task(receive(next(numbers)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            if step % 50 == 0:
                running.append(len(node.running_turns()))
        if tasks:
            await asyncio.wait(set(tasks))
        wall_s, cpu_s = watch.seconds, watch.cpu_s
        counted_reads, counted_writes = calls.reads.copy(), calls.writes.copy()
    sampler.cancel()
    ended = {name: value - before.get(name, 0) for name, value in node.parts.counters.items()}
    finished = max(1, ended.get("turns_finished", 0))
    return {
        "accepted": accepted / wall_s,
        "offered": OFFERED_PER_S,
        "admission_p50": admission.part(0.5),
        "admission_p99": admission.part(0.99),
        "lag_p50": lag.part(0.5),
        "lag_p99": lag.part(0.99),
        "lag_max": lag.part(1.0),
        "quiet_p99": quiet.samples.part(0.99),
        "quiet_max": quiet.samples.part(1.0),
        "running": sum(running) / len(running),
        "turns": finished / wall_s,
        "interrupted": ended.get("turns_interrupted", 0) / wall_s,
        "sent": (node.adapter.sent - sent) / wall_s,
        "cpu": cpu_s / wall_s,
        "load": os.getloadavg()[0],
        "reads": sum(counted_reads.values()) / wall_s,
        "writes": sum(counted_writes.values()) / wall_s,
        **{f"read {name}": count / finished for name, count in counted_reads.most_common()},
        **{f"write {name}": count / finished for name, count in counted_writes.most_common()},
    }


async def _most(node: SyntheticNode, lanes: int, numbers: itertools.count[int], seconds: float) -> Result:
    """Store messages as fast as possible, several at a time."""
    accepted, watch = 0, Stopwatch()

    async def call() -> None:
        nonlocal accepted
        while watch.seconds < seconds:
            number = next(numbers)
            result = await node.intake.receive(inbound(number % lanes, number))
            accepted += result.state == "accepted"

    await asyncio.gather(*(call() for _ in range(CALLERS)))
    return {"most_accepted": accepted / watch.seconds, "most_cpu": watch.cpu_s / watch.seconds}
