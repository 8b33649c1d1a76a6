"""Waiting for work beside the event loop, and again after errors of the database."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import StoreUnavailable
from hermes.gateway.node.work_watch import ThreadedWatch
from hermes.state.lanes.queue.watch import LaneWatch
from hermes_state import SessionDB


def accept(store: SessionDB) -> None:
    store.inbox.accept("agent:main:telegram:dm:1", {"text": "hello"}, platform="telegram")


def test_a_wait_ends_when_a_message_is_stored(home: Path) -> None:
    async def main(store: SessionDB) -> None:
        watch = ThreadedWatch(store, "n1/0")
        assert await watch.wait(0.0)  # a new watch does not know what came before it
        assert not await watch.wait(0.0)
        waiting = asyncio.create_task(watch.wait(20))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(accept, store)
        assert await asyncio.wait_for(waiting, 20)
        await watch.close()

    with SessionDB(home / "state.db") as store:
        asyncio.run(main(store))


def test_the_watch_is_opened_again_after_an_error_and_then_looks_for_what_it_missed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[LaneWatch] = []
    is_broken = [True]

    class Watch(LaneWatch):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            opened.append(self)

        def wait(self, timeout_s: float) -> bool:
            if is_broken[0]:
                raise StoreUnavailable("the database cannot be reached")
            return super().wait(timeout_s)

    monkeypatch.setattr("hermes.state.lanes.queue.watch.LaneWatch", Watch)

    async def main(store: SessionDB) -> None:
        watch = ThreadedWatch(store, "n1/0")
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await watch.wait(0.0)
        is_broken[0] = False
        assert await watch.wait(0.0)
        assert len(opened) == 3
        await watch.close()

    with SessionDB(home / "state.db") as store:
        asyncio.run(main(store))


def test_closing_ends_a_wait_and_its_thread(home: Path) -> None:
    async def main(store: SessionDB) -> None:
        watch = ThreadedWatch(store, "n1/0")
        await watch.wait(0.0)
        waiting = asyncio.create_task(watch.wait(600))
        await asyncio.sleep(0.05)
        await asyncio.wait_for(watch.close(), 20)
        assert not await waiting

    with SessionDB(home / "state.db") as store:
        asyncio.run(main(store))
    assert not any(each.name.startswith("hermes-watch") for each in threading.enumerate())


def test_closing_at_the_moment_of_opening_does_not_wait(home: Path) -> None:
    async def main(store: SessionDB) -> None:
        watch = ThreadedWatch(store, "n1/0")
        waiting = asyncio.create_task(watch.wait(600))
        await asyncio.sleep(0)
        await asyncio.wait_for(watch.close(), 20)
        assert await asyncio.wait_for(waiting, 20) in (True, False)

    with SessionDB(home / "state.db") as store:
        asyncio.run(main(store))
