"""Work of chats: in its order within a chat, side by side for different ones, and over when it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hermes.platforms.base.in_order import InOrder


class Works:
    """Works that note their beginning, and end when they are let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = asyncio.Event()

    def of(self, name: str) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            self.begun.append(name)
            await self.may_end.wait()

        return work


def test_work_of_one_key_waits_for_the_work_before_it_and_not_for_that_of_others() -> None:
    async def test() -> None:
        order, works = InOrder(), Works()
        tasks = [order.add(name[0], works.of(name)) for name in ("a1", "a2", "b1")]
        await asyncio.sleep(0)
        assert works.begun == ["a1", "b1"]
        works.may_end.set()
        await asyncio.wait(tasks)
        assert works.begun == ["a1", "b1", "a2"]

    asyncio.run(test())


def test_stop_ends_all_work_also_what_others_wait_for() -> None:
    async def test() -> None:
        order, works = InOrder(), Works()
        tasks = [order.add("a", works.of(name)) for name in ("a1", "a2", "a3")]
        await asyncio.sleep(0)
        await order.stop()
        assert all(each.cancelled() for each in tasks)
        works.may_end.set()
        assert works.begun == ["a1"]

    asyncio.run(test())


def test_work_that_fails_does_not_keep_the_next_one_from_running() -> None:
    async def test() -> None:
        async def fail() -> None:
            raise OSError("no")

        order, works = InOrder(), Works()
        works.may_end.set()
        failing, following = order.add("a", fail), order.add("a", works.of("a2"))
        await asyncio.wait([failing, following])
        assert (works.begun, str(failing.exception())) == (["a2"], "no")

    asyncio.run(test())
