"""A database that fails while a turn ends, and works again long before the lease of the lane ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hermes.errors import StoreFull
from hermes.gateway.engine import actor
from tests.gateway.engine.engine_node import EngineNode, running


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch, make_node: Callable[..., EngineNode]) -> tuple[EngineNode, list[str]]:
    """A node with a long lease, and the calls that failed; the database works again after the third release."""
    node = make_node(lease_s=3600.0)
    turns, failed = type(node.provider.turns), list[str]()
    monkeypatch.setattr(actor, "PAUSE_S", 0.02)

    def failing(name: str) -> Callable[..., Any]:
        works: Callable[..., Any] = getattr(turns, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if failed.count("release") >= 3:
                return works(*args, **kwargs)
            failed.append(name)
            raise StoreFull("the disk is full")

        return call

    for name in ("finish", "fail", "release"):
        monkeypatch.setattr(turns, name, failing(name))
    return node, failed


def test_a_turn_that_could_not_be_ended_is_continued_when_the_database_works_again(
    outage: tuple[EngineNode, list[str]],
) -> None:
    node, failed = outage

    async def main() -> None:
        node.brain.auto = lambda request: "done"
        async with running(node):
            uid = await node.say("hello")
            await node.idle()
            row = await node.message(uid)
            assert (row["state"], row["starts"], row["attempts"]) == ("done", 2, 1)
            assert await node.texts() == ["done"]

    asyncio.run(main())
    assert failed == ["finish", "fail", "release", "release", "release"]


def test_a_node_that_stops_does_not_wait_for_a_database_that_fails(outage: tuple[EngineNode, list[str]]) -> None:
    node, failed = outage
    actor.PAUSE_S = 3600.0  # `outage` restores it

    async def main() -> None:
        node.brain.auto = lambda request: "done"
        async with running(node):
            await node.say("hello")
            await node.until(lambda: _is_in(failed, "fail"), "the turn cannot be ended")

    asyncio.run(asyncio.wait_for(main(), 20))


async def _is_in(calls: list[str], name: str) -> bool:
    return name in calls
