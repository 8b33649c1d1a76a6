"""The clock of a node follows that of the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from hermes.errors import StoreUnavailable
from hermes.gateway.node import node_clock
from hermes.gateway.node.node_clock import NodeClock
from tests.support.clock import FakeClock


def server(clock: FakeClock) -> Callable[[], Awaitable[float]]:
    async def read() -> float:
        return clock()

    return read


def test_a_wrong_clock_is_corrected_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    here, there = FakeClock(1_090.0), FakeClock(1_000.0)
    clock = NodeClock(here)
    for _ in range(2):
        asyncio.run(clock.compare(server(there)))
    assert (clock(), len(caplog.messages)) == (1_000.0, 1)
    assert "90 s ahead of the database" in caplog.text
    here.advance(-90.0)  # it was set right
    asyncio.run(clock.compare(server(there)))
    assert (clock(), clock.offset_s) == (1_000.0, 0.0)


def test_a_small_difference_and_a_slow_database_change_nothing() -> None:
    here = FakeClock(1_000.0)
    clock = NodeClock(here)
    asyncio.run(clock.compare(server(FakeClock(1_001.5))))
    assert clock() == 1_000.0

    async def slowly() -> float:
        here.advance(60.0)
        return 1_000.0

    asyncio.run(clock.compare(slowly))
    assert clock.offset_s == 0.0


def test_it_follows_until_it_is_cancelled_also_past_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_clock, "EVERY_S", 0.0)
    clock = NodeClock(FakeClock(1_000.0))
    times: Iterator[float | Exception] = iter([StoreUnavailable("gone"), 5_000.0])
    corrected = asyncio.Event()

    async def read() -> float:
        time = next(times, None)
        if time is None:
            corrected.set()
            return 5_000.0
        if isinstance(time, Exception):
            raise time
        return time

    async def main() -> None:
        task = asyncio.create_task(clock.follow(read))
        await asyncio.wait_for(corrected.wait(), 20)
        task.cancel()

    asyncio.run(main())
    assert clock() == 5_000.0
