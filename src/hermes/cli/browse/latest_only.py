"""A background worker for slow queries, which runs only the newest query."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from hermes.errors import HermesError

Query = TypeVar("Query")
Result = TypeVar("Result")


class LatestOnly(Generic[Query, Result]):
    """Runs one query at a time on another thread and drops the result if a newer query has arrived."""

    def __init__(
        self,
        work: Callable[[Query], Result],
        show: Callable[[Query, Result], None],
        fail: Callable[[HermesError], None],
        *,
        delay_s: float,
    ) -> None:
        self._work, self._show, self._fail = work, show, fail
        self._delay_s = delay_s
        self._changed = asyncio.Event()
        self._pending: list[Query] = []

    def request(self, query: Query) -> None:
        """Run this query instead of any earlier one."""
        self._pending = [query]
        self._changed.set()

    def cancel(self) -> None:
        """Drop the pending query."""
        self._pending = []
        self._changed.set()

    async def run(self) -> None:
        """Run queries until the screen closes."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._delay_s)
            self._changed.clear()
            for query in self._pending:
                try:
                    result = await asyncio.to_thread(self._work, query)
                except HermesError as error:
                    self._fail(error)
                else:
                    if not self._changed.is_set():
                        self._show(query, result)
