"""A view of the store for one asker, for programs on an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from hermes.state.asynchronous.operation import iterate, read_operation, write_operation
from hermes.state.operations import Operations
from hermes.state.owner import Asker, Owner, OwnerName
from hermes.state.owner_view import OwnerView
from hermes.state.row_types import ExportedSession

if TYPE_CHECKING:
    from hermes.state.lanes.types import Lease

R = TypeVar("R")


class Runner(Protocol):
    """Runs work on a thread, outside the event loop."""

    async def __call__(self, work: Callable[[], R], *, is_write: bool) -> R:
        """Run `work` on the writer thread, or on one of the reader threads."""
        ...


class AsyncOwnerView:
    """The operations of `OwnerView`, awaited; made by `AsyncSessionDB.for_owner`."""

    MAX_TITLE_LENGTH: Final = OwnerView.MAX_TITLE_LENGTH
    sanitize_title = staticmethod(OwnerView.sanitize_title)

    def __init__(self, view: OwnerView, run: Runner) -> None:
        self._view = view
        self._run_on_thread = run

    @property
    def asker(self) -> Asker:
        """The asker whose sessions this view shows."""
        return self._view.asker

    @property
    def owner(self) -> Owner:
        """The owner of sessions that are created here, and of their notes and permissions."""
        return self._view.owner

    def narrowed_to(self, asker: Asker) -> AsyncOwnerView:
        """Return this view for an asker who sees no more, such as the owner of one conversation."""
        return AsyncOwnerView(self._view.narrowed_to(asker), self._run_on_thread)

    def fenced(self, lease: Lease) -> AsyncOwnerView:
        """Return this view for a node that has leased a lane: after another node has the lane, every write raises."""
        return AsyncOwnerView(self._view.fenced(lease), self._run_on_thread)

    @property
    def _operations(self) -> Operations:
        return self._view

    async def _run(self, work: Callable[[], R], *, is_write: bool) -> R:
        return await self._run_on_thread(work, is_write=is_write)

    count_by_source = read_operation(OwnerView.count_by_source)
    export_all = read_operation(OwnerView.export_all)
    export_session = read_operation(OwnerView.export_session)
    get_ancestors = read_operation(OwnerView.get_ancestors)
    get_anchored_view = read_operation(OwnerView.get_anchored_view)
    get_compression_lock_holder = read_operation(OwnerView.get_compression_lock_holder)
    get_compression_tip = read_operation(OwnerView.get_compression_tip)
    get_descendants = read_operation(OwnerView.get_descendants)
    get_messages = read_operation(OwnerView.get_messages)
    get_messages_around = read_operation(OwnerView.get_messages_around)
    get_messages_as_conversation = read_operation(OwnerView.get_messages_as_conversation)
    get_next_title_in_lineage = read_operation(OwnerView.get_next_title_in_lineage)
    get_session = read_operation(OwnerView.get_session)
    get_session_by_title = read_operation(OwnerView.get_session_by_title)
    get_session_title = read_operation(OwnerView.get_session_title)
    get_session_tools = read_operation(OwnerView.get_session_tools)
    list_cron_job_runs = read_operation(OwnerView.list_cron_job_runs)
    list_recent_user_messages = read_operation(OwnerView.list_recent_user_messages)
    list_rewinds = read_operation(OwnerView.list_rewinds)
    list_sessions_rich = read_operation(OwnerView.list_sessions_rich)
    list_usage_events = read_operation(OwnerView.list_usage_events)
    message_count = read_operation(OwnerView.message_count)
    resolve_resume_session_id = read_operation(OwnerView.resolve_resume_session_id)
    resolve_session_by_title = read_operation(OwnerView.resolve_session_by_title)
    resolve_session_id = read_operation(OwnerView.resolve_session_id)
    search_messages = read_operation(OwnerView.search_messages)
    search_sessions = read_operation(OwnerView.search_sessions)
    search_sessions_by_id = read_operation(OwnerView.search_sessions_by_id)
    session_count = read_operation(OwnerView.session_count)
    top_sessions = read_operation(OwnerView.top_sessions)
    usage_by_model = read_operation(OwnerView.usage_by_model)

    append_message = write_operation(OwnerView.append_message)
    append_messages = write_operation(OwnerView.append_messages)
    branch_session = write_operation(OwnerView.branch_session)
    clear_messages = write_operation(OwnerView.clear_messages)
    compress_session = write_operation(OwnerView.compress_session)
    create_session = write_operation(OwnerView.create_session)
    end_session = write_operation(OwnerView.end_session)
    ensure_session = write_operation(OwnerView.ensure_session)
    release_compression_lock = write_operation(OwnerView.release_compression_lock)
    renew_compression_lock = write_operation(OwnerView.renew_compression_lock)
    reopen_session = write_operation(OwnerView.reopen_session)
    replace_messages = write_operation(OwnerView.replace_messages)
    restore_rewound = write_operation(OwnerView.restore_rewound)
    rewind_to_message = write_operation(OwnerView.rewind_to_message)
    set_session_archived = write_operation(OwnerView.set_session_archived)
    set_session_pinned = write_operation(OwnerView.set_session_pinned)
    set_session_title = write_operation(OwnerView.set_session_title)
    set_title_if_untitled = write_operation(OwnerView.set_title_if_untitled)
    start_session = write_operation(OwnerView.start_session)
    try_acquire_compression_lock = write_operation(OwnerView.try_acquire_compression_lock)
    update_session_cwd = write_operation(OwnerView.update_session_cwd)
    update_session_meta = write_operation(OwnerView.update_session_meta)
    update_session_model = write_operation(OwnerView.update_session_model)
    update_system_prompt = write_operation(OwnerView.update_system_prompt)
    update_token_counts = write_operation(OwnerView.update_token_counts)

    async def iter_export(
        self, source: str | None = None, include_inactive: bool = False, *, owner: OwnerName = None
    ) -> AsyncIterator[ExportedSession]:
        """Yield the asker's sessions with their messages, one at a time."""
        async for row in iterate(self, self._view.iter_export(source, include_inactive, owner=owner)):
            yield row
