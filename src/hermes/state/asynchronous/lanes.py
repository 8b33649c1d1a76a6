"""The operations on lanes for programs on an event loop; unlike other writes, theirs run at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from hermes.state.asynchronous.operation import read_operation, write_operation
from hermes.state.asynchronous.owner_view import Runner
from hermes.state.lanes.connectors import Connectors
from hermes.state.lanes.delivery.outbox import Outbox
from hermes.state.lanes.entries import Lanes
from hermes.state.lanes.queue.inbox import Inbox
from hermes.state.lanes.queue.turns import Turns
from hermes.state.operations import Operations

G = TypeVar("G", bound=Operations)
R = TypeVar("R")


class AsyncGroup(Generic[G]):
    """A group of operations, awaited."""

    def __init__(self, group: G, run: Runner) -> None:
        self._group = group
        self._run_on_thread = run

    @property
    def _operations(self) -> G:
        return self._group

    async def _run(self, work: Callable[[], R], *, is_write: bool) -> R:
        return await self._run_on_thread(work, is_write=is_write)


class AsyncLanes(AsyncGroup[Lanes]):
    """Operations on lanes."""

    count = read_operation(Lanes.count)
    find_by_session = read_operation(Lanes.find_by_session)
    get = read_operation(Lanes.get)
    idle = read_operation(Lanes.idle)
    recent = read_operation(Lanes.recent)
    resume_candidates = read_operation(Lanes.resume_candidates)

    clear_resume_pending = write_operation(Lanes.clear_resume_pending)
    import_once = write_operation(Lanes.import_once)
    mark_recently_active = write_operation(Lanes.mark_recently_active)
    mark_resume_pending = write_operation(Lanes.mark_resume_pending)
    prune = write_operation(Lanes.prune)
    rebind = write_operation(Lanes.rebind)
    resolve = write_operation(Lanes.resolve)
    suspend = write_operation(Lanes.suspend)
    switch = write_operation(Lanes.switch)
    update = write_operation(Lanes.update)


class AsyncInbox(AsyncGroup[Inbox]):
    """Operations on messages from platforms."""

    dead = read_operation(Inbox.dead)
    depth = read_operation(Inbox.depth)
    find = read_operation(Inbox.find)
    get = read_operation(Inbox.get)
    held = read_operation(Inbox.held)
    totals = read_operation(Inbox.totals)
    waiting = read_operation(Inbox.waiting)

    accept = write_operation(Inbox.accept)
    delete = write_operation(Inbox.delete)
    discard_waiting = write_operation(Inbox.discard_waiting)
    expire = write_operation(Inbox.expire)
    retry = write_operation(Inbox.retry)
    sweep = write_operation(Inbox.sweep)


class AsyncTurns(AsyncGroup[Turns]):
    """Operations on turns and leases. A thread waits with the watch of the synchronous store."""

    busy_lanes = read_operation(Turns.busy_lanes)
    get = read_operation(Turns.get)
    history = read_operation(Turns.history)
    peek = read_operation(Turns.peek)
    running = read_operation(Turns.running)
    waiting_of = read_operation(Turns.waiting_of)

    acquire = write_operation(Turns.acquire)
    claim_next = write_operation(Turns.claim_next)
    discard = write_operation(Turns.discard)
    end_leases = write_operation(Turns.end_leases)
    fail = write_operation(Turns.fail)
    finish = write_operation(Turns.finish)
    hold = write_operation(Turns.hold)
    interrupt = write_operation(Turns.interrupt)
    join = write_operation(Turns.join)
    park = write_operation(Turns.park)
    progress = write_operation(Turns.progress)
    release = write_operation(Turns.release)
    renew = write_operation(Turns.renew)
    settle = write_operation(Turns.settle)
    start = write_operation(Turns.start)
    sweep = write_operation(Turns.sweep)
    unhold = write_operation(Turns.unhold)


class AsyncOutbox(AsyncGroup[Outbox]):
    """Operations on messages to platforms."""

    awaiting = read_operation(Outbox.awaiting)
    dead = read_operation(Outbox.dead)
    drafts = read_operation(Outbox.drafts)
    find = read_operation(Outbox.find)
    get = read_operation(Outbox.get)
    next_due = read_operation(Outbox.next_due)
    of_lane = read_operation(Outbox.of_lane)
    of_turn = read_operation(Outbox.of_turn)
    pending = read_operation(Outbox.pending)

    confirm = write_operation(Outbox.confirm)
    delete = write_operation(Outbox.delete)
    end_leases = write_operation(Outbox.end_leases)
    expire = write_operation(Outbox.expire)
    expire_dead = write_operation(Outbox.expire_dead)
    expire_due = write_operation(Outbox.expire_due)
    failed = write_operation(Outbox.failed)
    intend = write_operation(Outbox.intend)
    preview = write_operation(Outbox.preview)
    retry = write_operation(Outbox.retry)
    sending = write_operation(Outbox.sending)
    sent = write_operation(Outbox.sent)
    sweep = write_operation(Outbox.sweep)
    unknown = write_operation(Outbox.unknown)


class AsyncConnectors(AsyncGroup[Connectors]):
    """Operations on connector leases."""

    holder = read_operation(Connectors.holder)

    acquire = write_operation(Connectors.acquire)
    end_leases = write_operation(Connectors.end_leases)
    release = write_operation(Connectors.release)
    renew = write_operation(Connectors.renew)
