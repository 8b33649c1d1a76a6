"""Adapters: started, restarted after errors, stopped in bounded time; one poller per account among all nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hermes.gateway.engine.parts import EngineParts
from hermes.gateway.engine.ports import Admission, Inbound, NotSent
from hermes.gateway.node import connectors
from hermes.gateway.node.connectors import Connectors, name_of
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes_state import SessionDB
from tests.gateway.node.fake_adapter import FakeAdapter

LIMIT_S = 20.0


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connectors, "RETRY_S", (0.02, 0.05))
    monkeypatch.setattr(connectors, "STOP_S", 0.1)


async def receive(inbound: Inbound) -> Admission:
    return Admission("accepted")


@asynccontextmanager
async def store(home: Path) -> AsyncIterator[AsyncSessionDB]:
    db = await AsyncSessionDB.open(lambda: SessionDB(home / "state.db"))
    try:
        yield db
    finally:
        await db.close()


def node(db: AsyncSessionDB, name: str = "n1", lease_s: float = 5.0) -> Connectors:
    """The connectors of a node: they need only its settings, its store and its adapters."""
    settings = SimpleNamespace(holder=f"{name}/00000000", lease_s=lease_s)
    parts = cast("EngineParts", SimpleNamespace(db=db, settings=settings, adapters={}))
    return Connectors(parts, receive)


def adapters_of(made: Connectors) -> dict[tuple[str, str], Any]:
    return cast("dict[tuple[str, str], Any]", made._parts.adapters)


async def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + LIMIT_S
    while not is_so():
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(0.005)


def test_an_adapter_is_connected_and_stopped(home: Path) -> None:
    async def main() -> None:
        async with store(home) as db:
            made, adapter = node(db), FakeAdapter()
            made.start([adapter])
            await until(lambda: made.states.get("telegram") == "connected", "connected")
            assert adapters_of(made) == {("telegram", ""): adapter}
            await made.stop()
            assert adapters_of(made) == {}
            assert (adapter.starts, adapter.stops) == (1, 1)
            assert made.states["telegram"] == "stopped"

    asyncio.run(main())


def test_an_adapter_that_fails_to_start_is_tried_again_is_logged_once_and_does_not_harm_others(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with store(home) as db:
            made, bad, good = node(db), FakeAdapter(), FakeAdapter()
            good.platform = "slack"
            bad.start_errors = [NotSent("it cannot be reached"), OSError("no network"), OSError("no network")]
            made.start([bad, good])
            await until(lambda: made.states.get("slack") == "connected", "the good one is connected")
            await until(lambda: made.states.get("telegram") == "connected", "the bad one is connected")
            assert bad.starts == 4
            assert bad.stops == 3  # what a failed start has opened is closed
            await made.stop()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    told = [each.getMessage() for each in caplog.records if "telegram is not connected" in each.getMessage()]
    assert told == ["telegram is not connected: it cannot be reached"]


@pytest.mark.parametrize("fault", ["raises", "hangs"])
def test_an_adapter_whose_stop_fails_or_hangs_does_not_keep_the_node_running(home: Path, fault: str) -> None:
    async def main() -> None:
        async with store(home) as db:
            made, adapter = node(db), FakeAdapter()
            adapter.stop_error = RuntimeError("a bug") if fault == "raises" else None
            adapter.hangs_in_stop = fault == "hangs"
            made.start([adapter])
            await until(lambda: made.states.get("telegram") == "connected", "connected")
            await asyncio.wait_for(made.stop(), LIMIT_S)
            assert adapter.starts == 1

    asyncio.run(main())


def test_one_of_two_nodes_polls_an_account_and_the_other_one_says_so_once(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with store(home) as db:
            first, second = node(db, "n1", 0.5), node(db, "n2", 0.5)
            polling, waiting = FakeAdapter(needs_one_poller=True), FakeAdapter(needs_one_poller=True)
            first.start([polling])
            await until(lambda: first.states.get("telegram") == "connected", "the first node polls")
            second.start([waiting])
            await until(lambda: second.states.get("telegram") == "polled by n1", "the second node waits")
            await asyncio.sleep(1.2)  # longer than the lease: it is renewed
            assert waiting.starts == 0
            await first.stop()
            await until(lambda: second.states.get("telegram") == "connected", "the second node takes over")
            assert (polling.stops, waiting.starts) == (1, 1)
            await second.stop()
            holder = await db.connectors.holder("connector:telegram")
            assert holder is None

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert sum("is polled by n1" in each.getMessage() for each in caplog.records) == 1


def test_the_account_of_a_node_that_died_is_polled_after_its_lease(home: Path) -> None:
    async def main() -> None:
        async with store(home) as db:
            dead = await db.connectors.acquire("connector:telegram", "dead/00000000", 0.3)
            assert dead is not None
            made, adapter = node(db, lease_s=0.3), FakeAdapter(needs_one_poller=True)
            made.start([adapter])
            await until(lambda: made.states.get("telegram") == "connected", "the lease has ended")
            await made.stop()

    asyncio.run(main())


def test_a_node_that_lost_the_lease_of_an_account_stops_polling_and_logs_it_also_after_earlier_errors(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with store(home) as db:
            made, adapter = node(db, lease_s=0.3), FakeAdapter(needs_one_poller=True)
            adapter.start_errors = [OSError("no network"), OSError("no network")]
            made.start([adapter])
            await until(lambda: made.states.get("telegram") == "connected", "connected")
            held = await db.connectors.holder("connector:telegram")
            assert held is not None
            await db.connectors.release(held)
            other = await db.connectors.acquire("connector:telegram", "n2/00000000", 60.0)
            assert other is not None
            await until(lambda: adapter.stops == 3, "the adapter is stopped")
            await until(lambda: made.states.get("telegram") == "polled by n2", "the other node is named")
            assert adapters_of(made) == {}
            await made.stop()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert sum("telegram is not connected" in each.getMessage() for each in caplog.records) == 2


def test_the_name_of_an_adapter_has_its_account_if_there_are_several() -> None:
    adapter = FakeAdapter()
    assert name_of(adapter) == "telegram"
    adapter.account = "bot-2"
    assert name_of(adapter) == "telegram:bot-2"
