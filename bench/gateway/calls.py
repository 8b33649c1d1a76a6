"""Counts the transactions of a store by the operation that runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hermes.state.postgres.engine import PostgresEngine
from hermes.state.sqlite.engine import SqliteEngine

ENGINES: tuple[type[Any], ...] = (SqliteEngine, PostgresEngine)


class Calls:
    """Numbers of reads and writes by operation, such as `Inbox.accept`."""

    def __init__(self) -> None:
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()

    def clear(self) -> None:
        """Begin again."""
        self.reads.clear()
        self.writes.clear()


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Count the transactions of all stores of this process during the block."""
    calls = Calls()
    originals = [
        (engine, name, getattr(engine, name)) for engine in ENGINES for name in ("read", "write", "append_alone")
    ]
    for engine, name, original in originals:
        setattr(engine, name, _counting(original, calls.reads if name == "read" else calls.writes))
    try:
        yield calls
    finally:
        for engine, name, original in originals:
            setattr(engine, name, original)


def _counting(original: Callable[..., Any], counter: Counter[str]) -> Callable[..., Any]:
    def call(self: Any, work: Any, *args: Any, **more: Any) -> Any:
        name = getattr(work, "__qualname__", original.__name__)
        counter[name.split(".<locals>")[0]] += 1
        return original(self, work, *args, **more)

    return call
