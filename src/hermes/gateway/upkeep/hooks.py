"""Hooks: functions of the operator that are called when something happens in a gateway; they can harm nothing."""

from __future__ import annotations

import asyncio
import inspect
import json
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes.gateway.agents.threads import WorkerThreads
from hermes.gateway.upkeep.hook_files import EVENTS, Handler, find_handlers
from hermes.log import warn

__all__ = ["ENTRY_POINT_GROUP", "EVENTS", "Handler", "Hooks"]

ENTRY_POINT_GROUP = "hermes.hooks"
THREADS = 4


class Hooks:
    """Calls handlers on threads of its own, each for a limited time.

    A handler that takes too long is given up and not called again until it has ended.
    """

    def __init__(self, handlers: Sequence[Handler] = (), *, threads: int = THREADS) -> None:
        self.handlers = tuple(handlers)
        self.failures: dict[str, int] = {}
        """How often a handler failed, took too long or was left out, by `<handler> <event>`."""
        self._threads = WorkerThreads(threads, "hermes-hook")
        self._hanging: dict[str, int] = {}

    @classmethod
    def load(cls, home: Path, entry_point_group: str = ENTRY_POINT_GROUP) -> Hooks:
        """Return the hooks in a Hermes home and of installed packages; those that cannot be used are logged.

        This reads files and runs code, so it blocks.
        """
        return cls(find_handlers(home, entry_point_group))

    async def emit(self, event: str, context: Mapping[str, Any]) -> None:
        """Call the handlers of an event at the same time and wait for them, each up to its limit; this never raises.

        Handlers get a copy of the context, with plain JSON values.
        """
        wanted = [(each, name) for each in self.handlers if (name := each.event_for(event)) is not None]
        if not wanted:
            return
        try:
            copy = json.dumps(dict(context), default=str)
        except Exception as error:  # noqa: BLE001  a value without a text
            warn(__name__, "no hook was called for %s, because its context cannot be written as JSON: %s", event, error)
            return
        await asyncio.gather(*(self._call(handler, name, copy) for handler, name in wanted))

    def close(self) -> None:
        """Call no handler any more; those that run are not waited for."""
        self.handlers = ()

    async def _call(self, handler: Handler, event: str, context: str) -> None:
        if self._hanging.get(handler.name):
            self._count(handler, event, "it was left out, because its last call has not ended")
            return
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()

        def settle(problem: str) -> None:
            if not ended.done():
                ended.set_result(problem)
            elif self._hanging.get(handler.name):
                self._hanging[handler.name] -= 1

        def run() -> None:
            problem = _run_handler(handler, event, context)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, problem)

        try:
            job = self._threads.submit(run)
        except RuntimeError as error:  # the system has no thread for it
            self._count(handler, event, str(error))
            return
        try:
            problem = await asyncio.wait_for(ended, handler.timeout_s)
        except TimeoutError:
            if not job.drop():
                self._hanging[handler.name] = self._hanging.get(handler.name, 0) + 1
                job.abandon()
            problem = f"it took longer than {handler.timeout_s:g} s"
        except asyncio.CancelledError:
            job.drop()
            raise
        if problem:
            self._count(handler, event, problem)

    def _count(self, handler: Handler, event: str, problem: str) -> None:
        """Count a failure, and log the first one of a handler and an event."""
        key = f"{handler.name} {event}"
        self.failures[key] = self.failures.get(key, 0) + 1
        if self.failures[key] == 1:
            warn(
                __name__,
                "the hook %s failed for %s (later failures are only counted): %s",
                handler.name,
                event,
                problem,
            )


def _run_handler(handler: Handler, event: str, context: str) -> str:
    """Call a handler and return what went wrong, or an empty string."""
    try:
        result = handler.function(event, json.loads(context))
        if inspect.isawaitable(result):
            asyncio.run(_wait_for(result, handler.timeout_s))
    except BaseException:  # noqa: BLE001  also SystemExit, which must not end the thread
        return traceback.format_exc()
    return ""


async def _wait_for(result: Any, timeout_s: float) -> None:
    await asyncio.wait_for(result, timeout_s)
