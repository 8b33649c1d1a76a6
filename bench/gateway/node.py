"""A node as a process of its own: `python -m bench.gateway.node HOME NODE TURN_S`.

It prints `ready` and the seconds that its start took, and obeys the lines on its standard input: `drain`, `undrain`,
`figures`, `objects` (only without running turns); any other line, or the end, stops it. `-` instead of seconds lets the
offline model answer.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from bench.gateway.calls import Calls, counted_calls
from bench.gateway.synthetic import SyntheticNode
from bench.job import READY


async def main(home: Path, name: str, turn_s: float | None) -> None:
    """Run a node until it is stopped."""
    node = SyntheticNode(home, turn_s=turn_s, node=name)
    commands: dict[str, Callable[[], object]] = {
        "drain": node.drain,
        "undrain": node.undrain,
        "figures": object,
        "objects": _count_objects,
    }
    with counted_calls() as calls:
        began = time.perf_counter()
        await node.start()
        print(READY, time.perf_counter() - began, flush=True)
        while (command := commands.get((await asyncio.to_thread(sys.stdin.readline)).strip())) is not None:
            command()
            found = figures(node, calls)
            if command is _count_objects:
                found["objects"] = _count_objects()
            print(json.dumps(found), flush=True)
        node.expel()
        await node.stop()


def figures(node: SyntheticNode, calls: Calls) -> dict[str, float]:
    """Return what a node has done and what it has now."""
    gc.collect()
    if sys.platform == "linux":
        library: Any = ctypes.CDLL(None)
        library.malloc_trim(0)  # so that free memory does not count
    return {
        **{key: float(value) for key, value in node.parts.counters.items()},
        **{f"read {name}": float(count) for name, count in calls.reads.items()},
        **{f"write {name}": float(count) for name, count in calls.writes.items()},
        "sent": node.adapter.sent,
        "actors": len(node.dispatcher.actors),
        "cached": node.brain.figures().cache.entries,
        "sqlite": apsw.status(apsw.SQLITE_STATUS_MEMORY_USED)[0],
        "rss": _resident_bytes(),
        "cpu": time.process_time(),
    }


def _count_objects() -> float:
    """Count the objects of Python; while other threads work, this can make their operations fail."""
    gc.collect()
    return float(len(gc.get_objects()))


def _resident_bytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], None if sys.argv[3] == "-" else float(sys.argv[3])))
