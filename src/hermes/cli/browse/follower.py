"""Slow answers to quick wishes: only the newest one counts, and typing never waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from hermes.errors import HermesError

Wish = TypeVar("Wish")
Answer = TypeVar("Answer")


class Follower(Generic[Wish, Answer]):
    """Works on one wish at a time, on another thread; an answer to a wish that has changed meanwhile is dropped."""

    def __init__(
        self,
        work: Callable[[Wish], Answer],
        show: Callable[[Wish, Answer], None],
        fail: Callable[[HermesError], None],
        *,
        delay_s: float,
    ) -> None:
        self._work, self._show, self._fail = work, show, fail
        self._delay_s = delay_s
        self._changed = asyncio.Event()
        self._wishes: list[Wish] = []

    def wish(self, wish: Wish) -> None:
        """Wish for something instead of what was wished for before."""
        self._wishes = [wish]
        self._changed.set()

    def forget(self) -> None:
        """Wish for nothing."""
        self._wishes = []
        self._changed.set()

    async def follow(self) -> None:
        """Work for as long as the screen is there."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._delay_s)
            self._changed.clear()
            for wish in self._wishes:
                try:
                    answer = await asyncio.to_thread(self._work, wish)
                except HermesError as error:
                    self._fail(error)
                else:
                    if not self._changed.is_set():
                        self._show(wish, answer)
