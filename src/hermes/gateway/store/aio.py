"""The session store for programs on an event loop: the same operations, none of which blocks the loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from hermes.gateway.entry import SessionEntry
from hermes.gateway.store.session_store import SessionStore

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 8
"""How many operations run at the same time; those that write at once share a commit."""


class Operation(Generic[P, R]):
    """An operation of the store as an awaited method, with the same parameters and the same result."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self.__doc__ = method.__doc__
        self._method = method

    @overload
    def __get__(self, instance: None, owner: type[object]) -> Self: ...

    @overload
    def __get__(self, instance: AsyncSessionStore, owner: type[object]) -> Callable[P, Coroutine[Any, Any, R]]: ...

    def __get__(
        self, instance: AsyncSessionStore | None, owner: type[object]
    ) -> Self | Callable[P, Coroutine[Any, Any, R]]:
        if instance is None:
            return self

        @functools.wraps(self._method)
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            method: Callable[P, R] = getattr(instance.store, self._method.__name__)
            return await instance._run(functools.partial(method, *args, **kwargs))

        return call


class AsyncSessionStore:
    """A session store with awaited operations.

    An operation that has started finishes even if its caller is cancelled.
    """

    def __init__(self, store: SessionStore, *, threads: int = THREADS) -> None:
        self.store = store
        """The synchronous store, for code that may block."""
        self._threads = ThreadPoolExecutor(threads, "hermes-lanes")

    append_to_transcript = Operation(SessionStore.append_to_transcript)
    clear_restart_count = Operation(SessionStore.clear_restart_count)
    clear_resume_pending = Operation(SessionStore.clear_resume_pending)
    count_restart = Operation(SessionStore.count_restart)
    flush = Operation(SessionStore.flush)
    get_or_create_session = Operation(SessionStore.get_or_create_session)
    has_any_sessions = Operation(SessionStore.has_any_sessions)
    list_sessions = Operation(SessionStore.list_sessions)
    load_transcript = Operation(SessionStore.load_transcript)
    lookup_by_session_id = Operation(SessionStore.lookup_by_session_id)
    mark_resume_pending = Operation(SessionStore.mark_resume_pending)
    peek = Operation(SessionStore.peek)
    prune_old_entries = Operation(SessionStore.prune_old_entries)
    rebind_session = Operation(SessionStore.rebind_session)
    reset_session = Operation(SessionStore.reset_session)
    resume_candidates = Operation(SessionStore.resume_candidates)
    rewind_session = Operation(SessionStore.rewind_session)
    rewrite_transcript = Operation(SessionStore.rewrite_transcript)
    save = Operation(SessionStore.save)
    set_expiry_finalized = Operation(SessionStore.set_expiry_finalized)
    suspend_recently_active = Operation(SessionStore.suspend_recently_active)
    suspend_session = Operation(SessionStore.suspend_session)
    switch_session = Operation(SessionStore.switch_session)
    update_session = Operation(SessionStore.update_session)

    async def expired_entries(self) -> list[SessionEntry]:
        """Return the lanes whose session has expired and is not finalized, the longest idle first."""
        return await self._run(lambda: list(self.store.expired_entries()))

    async def close(self) -> None:
        """Write `sessions.json` and close the store, after the operations that have started."""
        await self._run(self.store.close)
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
