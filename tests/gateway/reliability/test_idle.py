"""An idle gateway reads now and then, and writes nothing."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.reliability.world import World
from tests.support.stores import engine_of
from tests.support.waiting import wait_until

LOOKS_S = 2.5
"""Longer than every pause between two looks at the database."""


@pytest.mark.parametrize("place", ["one", "many"])
def test_04_an_idle_engine_makes_no_write_transaction(place: str, request: pytest.FixtureRequest) -> None:
    world: World = request.getfixturevalue(place)
    node = world.thread()
    chat = world.chat(node)
    chat.ask("hello")
    chat.wait_for_replies("hello")
    wait_until(lambda: world.replies("hello")[0]["state"] == "sent", "the reply to be confirmed")
    node.call(node.runner.expiry.run_pass)
    node.call(node.settle)
    store = node.runner.db.store
    engine = engine_of(store)
    writes: list[str] = []
    reads: list[str] = []

    def counted(call: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            calls.append("".join(traceback.format_stack(limit=8)))
            return call(*args, **kwargs)

        return count

    setattr(engine, "write", counted(engine.write, writes))  # noqa: B010 - methods
    setattr(engine, "read", counted(engine.read, reads))  # noqa: B010
    threading.Event().wait(LOOKS_S)
    assert writes == []
    assert reads, "the node does not look for work"
    node.call(node.runner.expiry.run_pass)
    assert writes == []
