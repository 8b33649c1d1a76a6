"""Waits for work on a thread of its own, for the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from hermes.errors import HermesError

if TYPE_CHECKING:
    from hermes.state.lanes.queue.watch import LaneWatch
    from hermes.state.provider import SessionDBProvider


class ThreadedWatch:
    """A watch on the lanes of a store; its connection is opened again after an error."""

    def __init__(self, store: SessionDBProvider, holder: str) -> None:
        self._store = store
        self._holder = holder
        self._watch: LaneWatch | None = None
        self._is_closed = False
        self._thread = ThreadPoolExecutor(1, "hermes-watch")

    async def wait(self, timeout_s: float) -> bool:
        """Return True as soon as there may be work, False after the time."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._wait, timeout_s)

    async def close(self) -> None:
        """End the wait."""
        self._is_closed = True
        if self._watch is not None:
            self._watch.close()
        await asyncio.to_thread(self._thread.shutdown)

    def _wait(self, timeout_s: float) -> bool:
        if self._is_closed:
            return False
        is_new = self._watch is None
        if self._watch is None:
            self._watch = self._store.turns.watch(self._holder)
            if self._is_closed:  # meanwhile
                self._watch.close()
        try:
            # A new watch does not know what came before it.
            return self._watch.wait(timeout_s) or is_new
        except HermesError:
            self._watch.close()
            self._watch = None
            raise
