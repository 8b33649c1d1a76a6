"""The session store for programs that run on an event loop: the same operations, none of which ever blocks it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, overload

from hermes.errors import InvalidValue, StoreClosed
from hermes.log import warn
from hermes.state.engine import Capability
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.rows import count

if TYPE_CHECKING:
    from hermes.state.rowtypes import ExportedSession

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 4
"""How many reads are done at the same time, unless somebody says otherwise."""


class Operation(Generic[P, R]):
    """An operation of the store as a method that is awaited, with the same parameters and the same result."""

    def __init__(self, method: Callable[Concatenate[Any, P], R], *, is_write: bool) -> None:
        self.is_write = is_write
        self.__doc__ = method.__doc__
        self._method = method

    @overload
    def __get__(self, instance: None, owner: type[object]) -> Self: ...

    @overload
    def __get__(self, instance: AsyncSessionDB, owner: type[object]) -> Callable[P, Coroutine[Any, Any, R]]: ...

    def __get__(
        self, instance: AsyncSessionDB | None, owner: type[object]
    ) -> Self | Callable[P, Coroutine[Any, Any, R]]:
        if instance is None:
            return self

        @functools.wraps(self._method)
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            # By its name, so that a store that does it in its own way is heard.
            method: Callable[P, R] = getattr(instance.store, self._method.__name__)
            return await instance._run(functools.partial(method, *args, **kwargs), is_write=self.is_write)

        return call


def _read(method: Callable[Concatenate[Any, P], R]) -> Operation[P, R]:
    return Operation(method, is_write=False)


def _write(method: Callable[Concatenate[Any, P], R]) -> Operation[P, R]:
    return Operation(method, is_write=True)


class AsyncSessionDB:
    """A session store, of whichever kind, whose operations are awaited.

    Writes are done one after the other, in the order in which they were called; reads beside them on a few threads. A
    write that has begun comes to its end also when its caller is cancelled; one that has not begun is then left out.
    """

    MAX_TITLE_LENGTH: Final = SessionDBProvider.MAX_TITLE_LENGTH
    sanitize_title = staticmethod(SessionDBProvider.sanitize_title)

    def __init__(self, store: SessionDBProvider, *, threads: int = THREADS) -> None:
        if not isinstance(store, SessionDBProvider):
            raise InvalidValue(f"store must be a session store, not {type(store).__name__}")
        if count(threads, "threads") < 1:
            raise InvalidValue(f"threads must be at least 1, not {threads}")
        self.store = store
        """The store itself, for those who may wait."""
        self._writes = ThreadPoolExecutor(1, "hermes-write")
        self._reads = ThreadPoolExecutor(threads, "hermes-read")
        self._closing: Future[None] | None = None

    @classmethod
    async def open(cls, opener: Callable[[], SessionDBProvider] = open_session_db, *, threads: int = THREADS) -> Self:
        """Open a store beside the event loop: the configured one, or what `opener` opens."""
        opening = _on_a_thread("hermes-open", functools.partial(copy_context().run, opener))
        try:
            return cls(await asyncio.wrap_future(opening), threads=threads)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)
            raise

    @property
    def read_only(self) -> bool:
        """Whether this store can only be read."""
        return self.store.read_only

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this store can do that not every one can."""
        return self.store.capabilities

    count_by_source = _read(SessionDBProvider.count_by_source)
    count_empty_sessions = _read(SessionDBProvider.count_empty_sessions)
    export_all = _read(SessionDBProvider.export_all)
    export_session = _read(SessionDBProvider.export_session)
    get_ancestors = _read(SessionDBProvider.get_ancestors)
    get_anchored_view = _read(SessionDBProvider.get_anchored_view)
    get_compression_lock_holder = _read(SessionDBProvider.get_compression_lock_holder)
    get_compression_tip = _read(SessionDBProvider.get_compression_tip)
    get_descendants = _read(SessionDBProvider.get_descendants)
    get_handoff_state = _read(SessionDBProvider.get_handoff_state)
    get_messages = _read(SessionDBProvider.get_messages)
    get_messages_around = _read(SessionDBProvider.get_messages_around)
    get_messages_as_conversation = _read(SessionDBProvider.get_messages_as_conversation)
    get_meta = _read(SessionDBProvider.get_meta)
    get_next_title_in_lineage = _read(SessionDBProvider.get_next_title_in_lineage)
    get_session = _read(SessionDBProvider.get_session)
    get_session_by_title = _read(SessionDBProvider.get_session_by_title)
    get_session_title = _read(SessionDBProvider.get_session_title)
    get_session_tools = _read(SessionDBProvider.get_session_tools)
    health = _read(SessionDBProvider.health)
    list_cron_job_runs = _read(SessionDBProvider.list_cron_job_runs)
    list_pending_handoffs = _read(SessionDBProvider.list_pending_handoffs)
    list_prunable = _read(SessionDBProvider.list_prunable)
    list_recent_user_messages = _read(SessionDBProvider.list_recent_user_messages)
    list_rewinds = _read(SessionDBProvider.list_rewinds)
    list_sessions_rich = _read(SessionDBProvider.list_sessions_rich)
    list_usage_events = _read(SessionDBProvider.list_usage_events)
    message_count = _read(SessionDBProvider.message_count)
    preview_prune = _read(SessionDBProvider.preview_prune)
    resolve_resume_session_id = _read(SessionDBProvider.resolve_resume_session_id)
    resolve_session_by_title = _read(SessionDBProvider.resolve_session_by_title)
    resolve_session_id = _read(SessionDBProvider.resolve_session_id)
    schema_version = _read(SessionDBProvider.schema_version)
    search_messages = _read(SessionDBProvider.search_messages)
    search_sessions = _read(SessionDBProvider.search_sessions)
    search_sessions_by_id = _read(SessionDBProvider.search_sessions_by_id)
    session_count = _read(SessionDBProvider.session_count)
    top_sessions = _read(SessionDBProvider.top_sessions)
    usage_by_model = _read(SessionDBProvider.usage_by_model)

    append_message = _write(SessionDBProvider.append_message)
    append_messages = _write(SessionDBProvider.append_messages)
    branch_session = _write(SessionDBProvider.branch_session)
    claim_handoff = _write(SessionDBProvider.claim_handoff)
    clear_messages = _write(SessionDBProvider.clear_messages)
    complete_handoff = _write(SessionDBProvider.complete_handoff)
    compress_session = _write(SessionDBProvider.compress_session)
    create_session = _write(SessionDBProvider.create_session)
    delete_empty_sessions = _write(SessionDBProvider.delete_empty_sessions)
    delete_session = _write(SessionDBProvider.delete_session)
    delete_session_if_empty = _write(SessionDBProvider.delete_session_if_empty)
    delete_sessions = _write(SessionDBProvider.delete_sessions)
    delete_with_receipt = _write(SessionDBProvider.delete_with_receipt)
    end_session = _write(SessionDBProvider.end_session)
    ensure_session = _write(SessionDBProvider.ensure_session)
    fail_handoff = _write(SessionDBProvider.fail_handoff)
    finalize_orphaned_compression_sessions = _write(SessionDBProvider.finalize_orphaned_compression_sessions)
    import_database = _write(SessionDBProvider.import_database)
    import_session = _write(SessionDBProvider.import_session)
    initialize = _write(SessionDBProvider.initialize)
    maybe_auto_prune_and_vacuum = _write(SessionDBProvider.maybe_auto_prune_and_vacuum)
    optimize_fts = _write(SessionDBProvider.optimize_fts)
    prune_empty_ghost_sessions = _write(SessionDBProvider.prune_empty_ghost_sessions)
    prune_sessions = _write(SessionDBProvider.prune_sessions)
    prune_with_receipt = _write(SessionDBProvider.prune_with_receipt)
    release_compression_lock = _write(SessionDBProvider.release_compression_lock)
    renew_compression_lock = _write(SessionDBProvider.renew_compression_lock)
    reopen_session = _write(SessionDBProvider.reopen_session)
    replace_messages = _write(SessionDBProvider.replace_messages)
    request_handoff = _write(SessionDBProvider.request_handoff)
    restore_rewound = _write(SessionDBProvider.restore_rewound)
    rewind_to_message = _write(SessionDBProvider.rewind_to_message)
    set_meta = _write(SessionDBProvider.set_meta)
    set_session_archived = _write(SessionDBProvider.set_session_archived)
    set_session_pinned = _write(SessionDBProvider.set_session_pinned)
    set_session_title = _write(SessionDBProvider.set_session_title)
    set_title_if_untitled = _write(SessionDBProvider.set_title_if_untitled)
    start_session = _write(SessionDBProvider.start_session)
    try_acquire_compression_lock = _write(SessionDBProvider.try_acquire_compression_lock)
    update_session_cwd = _write(SessionDBProvider.update_session_cwd)
    update_session_meta = _write(SessionDBProvider.update_session_meta)
    update_session_model = _write(SessionDBProvider.update_session_model)
    update_system_prompt = _write(SessionDBProvider.update_system_prompt)
    update_token_counts = _write(SessionDBProvider.update_token_counts)
    vacuum = _write(SessionDBProvider.vacuum)

    async def iter_export(
        self, source: str | None = None, include_inactive: bool = False, *, owner: str | None = None
    ) -> AsyncIterator[ExportedSession]:
        """All sessions with their messages, one after the other: a store of any size fits into little memory."""
        rows = self.store.iter_export(source, include_inactive, owner=owner)
        while (row := await self._run(functools.partial(_next, rows), is_write=False)) is not None:
            yield row

    async def close(self) -> None:
        """Let all that was called come to its end, then let go of the store; a second call waits for that too."""
        if self._closing is None:
            self._closing = _on_a_thread("hermes-close", self._finish)
        await asyncio.shield(asyncio.wrap_future(self._closing))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, work: Callable[[], R], *, is_write: bool) -> R:
        """Do work on a thread, with the context of the caller."""
        if self._closing is not None:
            raise StoreClosed
        executor = self._writes if is_write else self._reads
        doing = executor.submit(copy_context().run, work)
        try:
            return await asyncio.wrap_future(doing)
        except asyncio.CancelledError:
            if is_write:
                doing.add_done_callback(_tell_unheard)
            raise

    def _finish(self) -> None:
        self._writes.shutdown()
        self._reads.shutdown()
        self.store.close()


def _on_a_thread(name: str, work: Callable[[], R]) -> Future[R]:
    """Do work on a thread that is gone afterwards."""
    executor = ThreadPoolExecutor(1, name)
    doing = executor.submit(work)
    executor.shutdown(wait=False)
    return doing


def _next(rows: Iterator[ExportedSession]) -> ExportedSession | None:
    return next(rows, None)


def _close_unwanted(opening: Future[SessionDBProvider]) -> None:
    """Close a store that nobody waits for any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _tell_unheard(doing: Future[Any]) -> None:
    """Note the failure of a write whose caller has left."""
    if not doing.cancelled() and (error := doing.exception()) is not None:
        warn(__name__, "a write failed after its caller was cancelled: %s", error)
