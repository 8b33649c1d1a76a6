"""The session store for programs on an event loop: the same operations, none of which blocks the loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from hermes.errors import InvalidValue, StoreClosed
from hermes.log import warn
from hermes.state.asynchronous.operation import iterate, read_operation, write_operation
from hermes.state.engine import Capability
from hermes.state.operations import Operations
from hermes.state.owner import OwnerName
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.rows import require_integer

if TYPE_CHECKING:
    from hermes.state.asynchronous.lanes import AsyncConnectors, AsyncInbox, AsyncLanes, AsyncOutbox, AsyncTurns
    from hermes.state.asynchronous.limits import AsyncApprovals, AsyncQuotas
    from hermes.state.asynchronous.owner_view import AsyncOwnerView
    from hermes.state.owner import Asker
    from hermes.state.row_types import ExportedSession

R = TypeVar("R")

THREADS = 4
"""The default number of reads at the same time."""
LANE_THREADS = 8
"""How many writes to lanes run at the same time; those on a file share their commits."""


class AsyncSessionDB:
    """A session store, of any kind, with awaited operations.

    Writes run one after the other, in the order of the calls; reads run in parallel on a few threads. A write that has
    started finishes even if its caller is cancelled; one that has not started is then dropped.
    """

    MAX_TITLE_LENGTH: Final = SessionDBProvider.MAX_TITLE_LENGTH
    sanitize_title = staticmethod(SessionDBProvider.sanitize_title)

    def __init__(self, store: SessionDBProvider, *, threads: int = THREADS) -> None:
        if not isinstance(store, SessionDBProvider):
            raise InvalidValue(f"store must be a session store, not {type(store).__name__}")
        if require_integer(threads, "threads") < 1:
            raise InvalidValue(f"threads must be at least 1, not {threads}")
        self.store = store
        """The synchronous store, for code that may block."""
        self._writes = ThreadPoolExecutor(1, "hermes-write")
        self._reads = ThreadPoolExecutor(threads, "hermes-read")
        self._lane_writes = ThreadPoolExecutor(LANE_THREADS, "hermes-lanes")
        self._closing: Future[None] | None = None

    @classmethod
    async def open(cls, opener: Callable[[], SessionDBProvider] = open_session_db, *, threads: int = THREADS) -> Self:
        """Open a store outside the event loop: the configured one, or what `opener` returns."""
        opening = _run_on_thread("hermes-open", functools.partial(copy_context().run, opener))
        try:
            return cls(await asyncio.wrap_future(opening), threads=threads)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)
            raise

    def for_owner(self, asker: Asker) -> AsyncOwnerView:
        """Return an awaited view of one owner's sessions, or of all with `EVERYBODY` (the operator)."""
        from hermes.state.asynchronous.owner_view import AsyncOwnerView

        return AsyncOwnerView(self.store.for_owner(asker), self._run)

    @property
    def _operations(self) -> Operations:
        return self.store

    @property
    def read_only(self) -> bool:
        """Whether this store is read-only."""
        return self.store.read_only

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The features of this store that not every store has."""
        return self.store.capabilities

    @property
    def lanes(self) -> AsyncLanes:
        """Operations on lanes: which session a chat uses."""
        from hermes.state.asynchronous.lanes import AsyncLanes

        return AsyncLanes(self.store.lanes, self._run_for_lanes)

    @property
    def inbox(self) -> AsyncInbox:
        """Operations on messages from platforms."""
        from hermes.state.asynchronous.lanes import AsyncInbox

        return AsyncInbox(self.store.inbox, self._run_for_lanes)

    @property
    def turns(self) -> AsyncTurns:
        """Operations on turns, and on the leases of lanes under which they run."""
        from hermes.state.asynchronous.lanes import AsyncTurns

        return AsyncTurns(self.store.turns, self._run_for_lanes)

    @property
    def outbox(self) -> AsyncOutbox:
        """Operations on messages to platforms."""
        from hermes.state.asynchronous.lanes import AsyncOutbox

        return AsyncOutbox(self.store.outbox, self._run_for_lanes)

    @property
    def connectors(self) -> AsyncConnectors:
        """Operations on connector leases."""
        from hermes.state.asynchronous.lanes import AsyncConnectors

        return AsyncConnectors(self.store.connectors, self._run_for_lanes)

    @property
    def approvals(self) -> AsyncApprovals:
        """Operations on requests to run a tool that wait for a person's decision."""
        from hermes.state.asynchronous.limits import AsyncApprovals

        return AsyncApprovals(self.store.approvals, self._run_for_lanes)

    @property
    def quotas(self) -> AsyncQuotas:
        """Operations on what users and chats may use on a day."""
        from hermes.state.asynchronous.limits import AsyncQuotas

        return AsyncQuotas(self.store.quotas, self._run_for_lanes)

    count_by_source = read_operation(SessionDBProvider.count_by_source)
    count_empty_sessions = read_operation(SessionDBProvider.count_empty_sessions)
    export_all = read_operation(SessionDBProvider.export_all)
    export_session = read_operation(SessionDBProvider.export_session)
    get_ancestors = read_operation(SessionDBProvider.get_ancestors)
    get_anchored_view = read_operation(SessionDBProvider.get_anchored_view)
    get_compression_lock_holder = read_operation(SessionDBProvider.get_compression_lock_holder)
    get_compression_tip = read_operation(SessionDBProvider.get_compression_tip)
    get_descendants = read_operation(SessionDBProvider.get_descendants)
    get_handoff_state = read_operation(SessionDBProvider.get_handoff_state)
    get_messages = read_operation(SessionDBProvider.get_messages)
    get_messages_around = read_operation(SessionDBProvider.get_messages_around)
    get_messages_as_conversation = read_operation(SessionDBProvider.get_messages_as_conversation)
    get_meta = read_operation(SessionDBProvider.get_meta)
    get_next_title_in_lineage = read_operation(SessionDBProvider.get_next_title_in_lineage)
    get_session = read_operation(SessionDBProvider.get_session)
    get_session_by_title = read_operation(SessionDBProvider.get_session_by_title)
    get_session_title = read_operation(SessionDBProvider.get_session_title)
    get_session_tools = read_operation(SessionDBProvider.get_session_tools)
    get_telegram_topic_binding = read_operation(SessionDBProvider.get_telegram_topic_binding)
    get_telegram_topic_binding_by_session = read_operation(SessionDBProvider.get_telegram_topic_binding_by_session)
    health = read_operation(SessionDBProvider.health)
    is_telegram_session_linked_to_topic = read_operation(SessionDBProvider.is_telegram_session_linked_to_topic)
    is_telegram_topic_mode_enabled = read_operation(SessionDBProvider.is_telegram_topic_mode_enabled)
    list_cron_job_runs = read_operation(SessionDBProvider.list_cron_job_runs)
    list_pending_handoffs = read_operation(SessionDBProvider.list_pending_handoffs)
    list_prunable = read_operation(SessionDBProvider.list_prunable)
    list_recent_user_messages = read_operation(SessionDBProvider.list_recent_user_messages)
    list_rewinds = read_operation(SessionDBProvider.list_rewinds)
    list_sessions_rich = read_operation(SessionDBProvider.list_sessions_rich)
    list_telegram_topic_bindings_for_chat = read_operation(SessionDBProvider.list_telegram_topic_bindings_for_chat)
    list_unlinked_telegram_sessions_for_user = read_operation(
        SessionDBProvider.list_unlinked_telegram_sessions_for_user
    )
    list_usage_events = read_operation(SessionDBProvider.list_usage_events)
    message_count = read_operation(SessionDBProvider.message_count)
    preview_prune = read_operation(SessionDBProvider.preview_prune)
    resolve_resume_session_id = read_operation(SessionDBProvider.resolve_resume_session_id)
    resolve_session_by_title = read_operation(SessionDBProvider.resolve_session_by_title)
    resolve_session_id = read_operation(SessionDBProvider.resolve_session_id)
    schema_version = read_operation(SessionDBProvider.schema_version)
    search_messages = read_operation(SessionDBProvider.search_messages)
    search_sessions = read_operation(SessionDBProvider.search_sessions)
    search_sessions_by_id = read_operation(SessionDBProvider.search_sessions_by_id)
    session_count = read_operation(SessionDBProvider.session_count)
    top_sessions = read_operation(SessionDBProvider.top_sessions)
    usage_by_model = read_operation(SessionDBProvider.usage_by_model)

    append_message = write_operation(SessionDBProvider.append_message)
    append_messages = write_operation(SessionDBProvider.append_messages)
    apply_telegram_topic_migration = write_operation(SessionDBProvider.apply_telegram_topic_migration)
    bind_telegram_topic = write_operation(SessionDBProvider.bind_telegram_topic)
    branch_session = write_operation(SessionDBProvider.branch_session)
    claim_handoff = write_operation(SessionDBProvider.claim_handoff)
    clear_messages = write_operation(SessionDBProvider.clear_messages)
    complete_handoff = write_operation(SessionDBProvider.complete_handoff)
    compress_session = write_operation(SessionDBProvider.compress_session)
    create_session = write_operation(SessionDBProvider.create_session)
    delete_empty_sessions = write_operation(SessionDBProvider.delete_empty_sessions)
    delete_session = write_operation(SessionDBProvider.delete_session)
    delete_session_if_empty = write_operation(SessionDBProvider.delete_session_if_empty)
    delete_sessions = write_operation(SessionDBProvider.delete_sessions)
    delete_with_receipt = write_operation(SessionDBProvider.delete_with_receipt)
    disable_telegram_topic_mode = write_operation(SessionDBProvider.disable_telegram_topic_mode)
    enable_telegram_topic_mode = write_operation(SessionDBProvider.enable_telegram_topic_mode)
    end_session = write_operation(SessionDBProvider.end_session)
    ensure_session = write_operation(SessionDBProvider.ensure_session)
    fail_handoff = write_operation(SessionDBProvider.fail_handoff)
    finalize_orphaned_compression_sessions = write_operation(SessionDBProvider.finalize_orphaned_compression_sessions)
    import_database = write_operation(SessionDBProvider.import_database)
    import_session = write_operation(SessionDBProvider.import_session)
    initialize = write_operation(SessionDBProvider.initialize)
    maybe_auto_prune_and_vacuum = write_operation(SessionDBProvider.maybe_auto_prune_and_vacuum)
    optimize_fts = write_operation(SessionDBProvider.optimize_fts)
    prune_empty_ghost_sessions = write_operation(SessionDBProvider.prune_empty_ghost_sessions)
    prune_sessions = write_operation(SessionDBProvider.prune_sessions)
    prune_with_receipt = write_operation(SessionDBProvider.prune_with_receipt)
    release_compression_lock = write_operation(SessionDBProvider.release_compression_lock)
    renew_compression_lock = write_operation(SessionDBProvider.renew_compression_lock)
    reopen_session = write_operation(SessionDBProvider.reopen_session)
    replace_messages = write_operation(SessionDBProvider.replace_messages)
    request_handoff = write_operation(SessionDBProvider.request_handoff)
    restore_rewound = write_operation(SessionDBProvider.restore_rewound)
    rewind_to_message = write_operation(SessionDBProvider.rewind_to_message)
    set_meta = write_operation(SessionDBProvider.set_meta)
    set_session_archived = write_operation(SessionDBProvider.set_session_archived)
    set_session_pinned = write_operation(SessionDBProvider.set_session_pinned)
    set_session_title = write_operation(SessionDBProvider.set_session_title)
    set_title_if_untitled = write_operation(SessionDBProvider.set_title_if_untitled)
    start_session = write_operation(SessionDBProvider.start_session)
    try_acquire_compression_lock = write_operation(SessionDBProvider.try_acquire_compression_lock)
    update_session_cwd = write_operation(SessionDBProvider.update_session_cwd)
    update_session_meta = write_operation(SessionDBProvider.update_session_meta)
    update_session_model = write_operation(SessionDBProvider.update_session_model)
    update_system_prompt = write_operation(SessionDBProvider.update_system_prompt)
    update_token_counts = write_operation(SessionDBProvider.update_token_counts)
    vacuum = write_operation(SessionDBProvider.vacuum)

    async def iter_export(
        self, source: str | None = None, include_inactive: bool = False, *, owner: OwnerName = None
    ) -> AsyncIterator[ExportedSession]:
        """Yield all sessions with their messages, one at a time, so that a store of any size needs little memory."""
        async for row in iterate(self, self.store.iter_export(source, include_inactive, owner=owner)):
            yield row

    async def close(self) -> None:
        """Wait for all running calls, then close the store; a second call waits for that too."""
        if self._closing is None:
            self._closing = _run_on_thread("hermes-close", self._finish)
        await asyncio.shield(asyncio.wrap_future(self._closing))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, work: Callable[[], R], *, is_write: bool) -> R:
        """Run `work` on a thread, with the context of the caller."""
        return await self._run_on(self._writes if is_write else self._reads, work, is_write=is_write)

    async def _run_for_lanes(self, work: Callable[[], R], *, is_write: bool) -> R:
        """Run `work` of a lane; the writes of different lanes do not wait for each other."""
        return await self._run_on(self._lane_writes if is_write else self._reads, work, is_write=is_write)

    async def _run_on(self, executor: ThreadPoolExecutor, work: Callable[[], R], *, is_write: bool) -> R:
        if self._closing is not None:
            raise StoreClosed
        doing = executor.submit(copy_context().run, work)
        try:
            return await asyncio.wrap_future(doing)
        except asyncio.CancelledError:
            if is_write:
                doing.add_done_callback(_log_failure)
            raise

    def _finish(self) -> None:
        self._writes.shutdown()
        self._lane_writes.shutdown()
        self._reads.shutdown()
        self.store.close()


def _run_on_thread(name: str, work: Callable[[], R]) -> Future[R]:
    """Run `work` on a new thread that ends afterwards."""
    executor = ThreadPoolExecutor(1, name)
    doing = executor.submit(work)
    executor.shutdown(wait=False)
    return doing


def _close_unwanted(opening: Future[SessionDBProvider]) -> None:
    """Close a store whose caller no longer waits for it."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _log_failure(doing: Future[Any]) -> None:
    """Log the failure of a write whose caller was cancelled."""
    if not doing.cancelled() and (error := doing.exception()) is not None:
        warn(__name__, "a write failed after its caller was cancelled: %s", error)
