"""The sizes of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """The sizes of the workloads."""

    name: str
    append_messages: int
    thread_messages: int
    slow_messages: int
    process_messages: int
    load_messages: int
    list_sessions: int
    list_messages: int
    size_sessions: int
    size_messages: int
    starts: int
    search_sizes: tuple[int, ...]

    threads: int = 16
    processes: int = 8
    batch: int = 10
    slow_fsync_ms: float = 5.0
    load_repeats: int = 30
    list_repeats: int = 200
    search_repeats: int = 15
    lanes: tuple[int, ...] = (100, 1_000, 3_000, 100_000)
    touches: int = 60


QUICK = Scale("quick", 1_500, 1_600, 100, 100, 1_000, 500, 5_000, 100, 5_000, 5, (3_000,))
DEFAULT = Scale("default", 6_000, 6_400, 300, 500, 1_000, 5_000, 100_000, 400, 20_000, 15, (100_000,))
FULL = Scale("full", 20_000, 20_800, 600, 1_000, 1_000, 20_000, 1_000_000, 2_000, 100_000, 15, (100_000, 1_000_000))
