"""Every operation on lanes, on closed and read-only stores, and awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from hermes.errors import HermesError, StoreClosed, StoreReadOnly
from hermes.state.asynchronous.lanes import AsyncConnectors, AsyncInbox, AsyncLanes, AsyncOutbox, AsyncTurns
from hermes.state.asynchronous.limits import AsyncApprovals, AsyncQuotas
from hermes.state.asynchronous.operation import Operation
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.approvals import Approvals
from hermes.state.lanes.connectors import Connectors
from hermes.state.lanes.delivery.outbox import Outbox
from hermes.state.lanes.entries import Lanes
from hermes.state.lanes.queue.inbox import Inbox
from hermes.state.lanes.queue.turns import Turns
from hermes.state.lanes.quotas import QuotaLimits, Quotas
from hermes.state.lanes.types import ConnectorLease, ImportedLane, Keep, Lease, NewSession
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import KEY, accept, claim, reply, start_lane
from tests.support.stores import Opener

Call = Callable[[Any], object]
LEASE = Lease(KEY, "n1", 1, 0.0)
CONNECTOR = ConnectorLease("c", "n1", 1, 0.0)
GROUPS = {
    "lanes": Lanes,
    "inbox": Inbox,
    "turns": Turns,
    "outbox": Outbox,
    "connectors": Connectors,
    "approvals": Approvals,
    "quotas": Quotas,
}
ASYNC_GROUPS = {
    "lanes": AsyncLanes,
    "inbox": AsyncInbox,
    "turns": AsyncTurns,
    "outbox": AsyncOutbox,
    "connectors": AsyncConnectors,
    "approvals": AsyncApprovals,
    "quotas": AsyncQuotas,
}

READS: dict[str, Call] = {
    "lanes.count": lambda db: db.lanes.count(),
    "lanes.find_by_session": lambda db: db.lanes.find_by_session("s1"),
    "lanes.get": lambda db: db.lanes.get(KEY),
    "lanes.idle": lambda db: db.lanes.idle(1e12),
    "lanes.recent": lambda db: db.lanes.recent(),
    "lanes.resume_candidates": lambda db: db.lanes.resume_candidates(),
    "inbox.dead": lambda db: db.inbox.dead(),
    "inbox.depth": lambda db: db.inbox.depth(KEY),
    "inbox.find": lambda db: db.inbox.find("m"),
    "inbox.get": lambda db: db.inbox.get(1),
    "inbox.held": lambda db: db.inbox.held(KEY),
    "inbox.totals": lambda db: db.inbox.totals(),
    "inbox.waiting": lambda db: db.inbox.waiting(KEY),
    "turns.busy_lanes": lambda db: db.turns.busy_lanes("agent:"),
    "turns.get": lambda db: db.turns.get("t"),
    "turns.history": lambda db: db.turns.history(KEY),
    "turns.peek": lambda db: db.turns.peek(),
    "turns.running": lambda db: db.turns.running(),
    "turns.waiting_of": lambda db: db.turns.waiting_of("n1"),
    "outbox.awaiting": lambda db: db.outbox.awaiting("telegram"),
    "outbox.dead": lambda db: db.outbox.dead(),
    "outbox.drafts": lambda db: db.outbox.drafts(0),
    "outbox.find": lambda db: db.outbox.find("k"),
    "outbox.get": lambda db: db.outbox.get(1),
    "outbox.next_due": lambda db: db.outbox.next_due(),
    "outbox.of_lane": lambda db: db.outbox.of_lane(KEY),
    "outbox.of_turn": lambda db: db.outbox.of_turn("t"),
    "outbox.pending": lambda db: db.outbox.pending(),
    "connectors.holder": lambda db: db.connectors.holder("c"),
    "approvals.get": lambda db: db.approvals.get("AAAAAA"),
    "approvals.pending": lambda db: db.approvals.pending(),
    "quotas.read": lambda db: db.quotas.read("u", "2026-01-31"),
}
WRITES: dict[str, Call] = {
    "lanes.clear_resume_pending": lambda db: db.lanes.clear_resume_pending(KEY),
    "lanes.import_once": lambda db: db.lanes.import_once([ImportedLane("k", NewSession("s9", "telegram"))]),
    "lanes.mark_recently_active": lambda db: db.lanes.mark_recently_active(0.0),
    "lanes.mark_resume_pending": lambda db: db.lanes.mark_resume_pending(KEY, "why"),
    "lanes.prune": lambda db: db.lanes.prune(1e12),
    "lanes.rebind": lambda db: db.lanes.rebind(KEY, "s1", "s1"),
    "lanes.resolve": lambda db: db.lanes.resolve(KEY, lambda *_: Keep()),
    "lanes.suspend": lambda db: db.lanes.suspend(KEY),
    "lanes.switch": lambda db: db.lanes.switch(KEY, "s1"),
    "lanes.update": lambda db: db.lanes.update(KEY),
    "inbox.accept": lambda db: db.inbox.accept(KEY, {}, platform="telegram"),
    "inbox.delete": lambda db: db.inbox.delete(1),
    "inbox.discard_waiting": lambda db: db.inbox.discard_waiting(KEY, "why"),
    "inbox.expire": lambda db: db.inbox.expire(0),
    "inbox.retry": lambda db: db.inbox.retry(1),
    "inbox.sweep": lambda db: db.inbox.sweep(0),
    "turns.acquire": lambda db: db.turns.acquire("other", "n1"),
    "turns.claim_next": lambda db: db.turns.claim_next("n1"),
    "turns.discard": lambda db: db.turns.discard(LEASE, "t", "why"),
    "turns.end_leases": lambda db: db.turns.end_leases("n1"),
    "outbox.end_leases": lambda db: db.outbox.end_leases("n1"),
    "turns.fail": lambda db: db.turns.fail(LEASE, "t", "why"),
    "turns.finish": lambda db: db.turns.finish(LEASE, "t"),
    "turns.hold": lambda db: db.turns.hold(LEASE, reason="why"),
    "turns.interrupt": lambda db: db.turns.interrupt(LEASE, "t"),
    "turns.join": lambda db: db.turns.join(LEASE, "t", [1]),
    "turns.park": lambda db: db.turns.park(LEASE, "t", "why"),
    "turns.progress": lambda db: db.turns.progress(LEASE, "t"),
    "turns.release": lambda db: db.turns.release(LEASE),
    "turns.renew": lambda db: db.turns.renew(LEASE),
    "turns.settle": lambda db: db.turns.settle(LEASE, [1]),
    "turns.start": lambda db: db.turns.start(LEASE, [1]),
    "turns.sweep": lambda db: db.turns.sweep(0),
    "turns.unhold": lambda db: db.turns.unhold(LEASE),
    "outbox.confirm": lambda db: db.outbox.confirm(1),
    "outbox.delete": lambda db: db.outbox.delete(1),
    "outbox.expire": lambda db: db.outbox.expire(1),
    "outbox.expire_dead": lambda db: db.outbox.expire_dead(0),
    "outbox.expire_due": lambda db: db.outbox.expire_due(),
    "outbox.failed": lambda db: db.outbox.failed(1, 1, "why"),
    "outbox.intend": lambda db: db.outbox.intend(reply()),
    "outbox.preview": lambda db: db.outbox.preview(1, {}),
    "outbox.retry": lambda db: db.outbox.retry(1),
    "outbox.sending": lambda db: db.outbox.sending("n1"),
    "outbox.sent": lambda db: db.outbox.sent(1, 1),
    "outbox.sweep": lambda db: db.outbox.sweep(0),
    "outbox.unknown": lambda db: db.outbox.unknown(1, 1, "why"),
    "connectors.acquire": lambda db: db.connectors.acquire("c", "n1"),
    "connectors.end_leases": lambda db: db.connectors.end_leases("n1"),
    "connectors.release": lambda db: db.connectors.release(CONNECTOR),
    "connectors.renew": lambda db: db.connectors.renew(CONNECTOR),
    "approvals.decide": lambda db: db.approvals.decide("AAAAAA", True, "ann"),
    "approvals.expire_due": lambda db: db.approvals.expire_due(),
    "approvals.request": lambda db: db.approvals.request(KEY, "s1", "terminal", "{}", ttl_seconds=60),
    "approvals.sweep": lambda db: db.approvals.sweep(0),
    "approvals.use": lambda db: db.approvals.use("AAAAAA", "d"),
    "quotas.add": lambda db: db.quotas.add(["u"], "2026-01-31", tokens=1),
    "quotas.begin": lambda db: db.quotas.begin({"u": QuotaLimits()}, "2026-01-31"),
    "quotas.sweep": lambda db: db.quotas.sweep("2026-01-31"),
}


def fill(store: SessionDBProvider) -> None:
    """Store some of everything, so that every write has something to do."""
    start_lane(store)
    for name in ("a", "b"):
        accept(store, name)
    taken = claim(store)
    store.turns.finish(taken.lease, taken.turn_id or "", intents=[reply("r")])


def public(kind: type[object]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_operation_is_tried_here() -> None:
    names = {f"{group}.{name}" for group, kind in GROUPS.items() for name in public(kind)}
    assert READS.keys() | WRITES.keys() == names - {"turns.watch"}
    assert [name for name in names if not getattr(GROUPS[name.split(".")[0]], name.split(".")[1]).__doc__] == []


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_the_awaited_operations_are_those_of_the_store(group: str) -> None:
    found = {name: inspect.getattr_static(ASYNC_GROUPS[group], name) for name in public(ASYNC_GROUPS[group])}
    assert found.keys() == public(GROUPS[group]) - {"watch"}
    for name, each in found.items():
        assert isinstance(each, Operation)
        assert each.is_write == (f"{group}.{name}" in WRITES)
        assert each.__doc__ == getattr(GROUPS[group], name).__doc__


def refused(store: SessionDBProvider, kind: type[HermesError]) -> set[str]:
    found = set()
    for name, call in {**READS, **WRITES}.items():
        try:
            call(store)
        except kind:
            found.add(name)
        except HermesError:
            pass
    return found


def test_a_closed_store_refuses_everything(open_store: Opener) -> None:
    store = open_store()
    store.close()
    assert refused(store, StoreClosed) == {*READS, *WRITES}


def test_a_read_only_store_refuses_every_write(open_store: Opener) -> None:
    fill(open_store())
    read_only = open_store(read_only=True)
    assert refused(read_only, StoreReadOnly) == set(WRITES)
    assert read_only.inbox.depth(KEY) == 1


def test_awaited_operations_return_what_the_store_returns(open_store: Opener) -> None:
    fill(open_store())

    async def results() -> tuple[Any, Any, Any]:
        async with AsyncSessionDB(open_store()) as db:
            accepted = await asyncio.gather(
                *(db.inbox.accept(f"lane {number}", {"n": number}, platform="telegram") for number in range(20))
            )
            taken = await db.turns.claim_next("n1")
            return len({each.message["id"] for each in accepted}), await db.lanes.get(KEY), taken

    count, lane, taken = asyncio.run(results())
    assert (count, lane["session_id"], taken.lease.session_key) == (20, "s1", KEY)
