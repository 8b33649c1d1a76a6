"""Work of many chats at the same time, and of one chat in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class InOrder:
    """Runs work for keys: that of one key in the order in which it was added, that of different keys side by side."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, key: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Start work after the work that was added for the same key before; return its task."""
        task = asyncio.create_task(self._run(self._last.get(key), work))
        self._last[key] = task
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._forget(key, done))
        return task

    async def stop(self) -> None:
        """Cancel everything and wait for its end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, before: asyncio.Task[None] | None, work: Callable[[], Awaitable[None]]) -> None:
        if before is not None:
            await asyncio.wait({before})
        await work()

    def _forget(self, key: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._last.get(key) is task:
            del self._last[key]
