"""Touches of lanes: what a gateway does in its store for every message. Peers run this too."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench.job import Job, Result
from bench.store import Store


def touch(open_store: Callable[[Path], Store], job: Job) -> Result:
    """Touch lanes of a file with so many of them, through the documented store of chats."""
    store = open_store(Path(job.path))
    store.fill_lanes(job.sessions)
    store.close()
    store = open_store(Path(job.path))
    began = time.perf_counter()
    store.touch_lane(0)
    opening_s = time.perf_counter() - began
    cpu, wall = [], []
    for number in range(1, job.repeats + 1):
        cpu_before, before = time.process_time(), time.perf_counter()
        store.touch_lane(number * 7_919 % job.sessions)
        cpu.append(time.process_time() - cpu_before)
        wall.append(time.perf_counter() - before)
    store.close()
    return {"cpu": statistics.median(cpu) * 1000, "ms": statistics.median(wall) * 1000, "opening": opening_s * 1000}
