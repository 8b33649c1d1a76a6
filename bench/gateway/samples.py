"""Samples of a run: how late sleeps end, and how long calls take."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hermes.gateway.upkeep.loop_lag import quantile

SLEEP_S = 0.01


@dataclass(slots=True)
class Samples:
    """Times in milliseconds."""

    values: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        """Keep a sample."""
        self.values.append(max(0.0, seconds) * 1000)

    def part(self, part: float) -> float:
        """The value that this part of the samples does not exceed."""
        return quantile(sorted(self.values), part) if self.values else 0.0


async def sample_lag(samples: Samples) -> None:
    """Note how late a short sleep ends, until the task is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        await asyncio.sleep(SLEEP_S)
        samples.add(loop.time() - began - SLEEP_S)


class QuietProcess:
    """A process that only sleeps: how late it wakes is what the machine costs, not the gateway."""

    def __init__(self) -> None:
        self.samples = Samples()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run the process during the block."""
        process = subprocess.Popen(
            [sys.executable, "-c", _SLEEPER, str(SLEEP_S)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            yield
        finally:
            output, _ = process.communicate("stop\n")
            self.samples.values = json.loads(output)


_SLEEPER = """
import asyncio, json, sys, threading
sleep_s, samples = float(sys.argv[1]), []
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
async def main():
    loop = asyncio.get_running_loop()
    while not ended.is_set():
        began = loop.time()
        await asyncio.sleep(sleep_s)
        samples.append(max(0.0, loop.time() - began - sleep_s) * 1000)
asyncio.run(main())
print(json.dumps(samples))
"""


class Stopwatch:
    """Wall time and CPU time of this process since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """Wall time."""
        return time.perf_counter() - self._wall

    @property
    def cpu_s(self) -> float:
        """CPU time of all threads."""
        return time.process_time() - self._cpu
