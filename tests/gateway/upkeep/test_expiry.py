"""Sessions that have expired: finalized once, by one node, and never while their lane is in use."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import StoreBusy
from hermes.gateway import AsyncSessionStore, GatewayConfig, Platform, SessionResetPolicy, SessionSource, SessionStore
from hermes.gateway.entry import SessionEntry
from hermes.gateway.upkeep.expiry import UPKEEP, ExpiryWatcher, PassReport
from hermes.gateway.upkeep.finalizing import SESSION_EXPIRED
from hermes.gateway.upkeep.sweeps import Sweeps
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.lanes.approvals import ApprovalRow
from hermes.state.lanes.types import Intent, LaneRow, Lease
from hermes.state.loop_guard import guard_event_loop
from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.engines import clock, open_store, stores
from tests.support.stores import Opener
from tests.support.waiting import wait_until

__all__ = ["clock", "open_store", "stores"]

IDLE = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="idle", idle_minutes=60))
HOUR_S = 3601.0


class Gateway:
    """The store of a gateway and the sessions that were finalized."""

    def __init__(self, db: SessionDBProvider, sessions_dir: Path, clock: FakeClock) -> None:
        self.db, self.clock = db, clock
        self.store = SessionStore(sessions_dir, IDLE, db=db, clock=clock)
        self.finalized: list[str] = []
        self.during: Callable[[SessionEntry, Lease], Coroutine[Any, Any, None]] | None = None

    def chat(self, user: str = "1") -> SessionEntry:
        """Use a lane now."""
        return self.store.get_or_create_session(SessionSource(Platform.TELEGRAM, user, user_id=user))

    def row(self, entry: SessionEntry) -> LaneRow:
        row = self.db.lanes.get(entry.session_key)
        assert row is not None
        return row

    async def finalize(self, entry: SessionEntry, reason: str, lease: Lease) -> None:
        assert reason == SESSION_EXPIRED
        assert lease.session_key == entry.session_key
        if self.during is not None:
            await self.during(entry, lease)
        self.finalized.append(entry.session_id)

    @asynccontextmanager
    async def watcher(self, node: str = "n1", **options: Any) -> AsyncIterator[ExpiryWatcher]:
        db, store = AsyncSessionDB(self.db), AsyncSessionStore(self.store)
        yield ExpiryWatcher(store, db, node, self.finalize, **options)

    def run_pass(self, node: str = "n1", **options: Any) -> PassReport:
        """Run one pass in a process of its own, which gives up its charge at the end."""

        async def run() -> PassReport:
            async with self.watcher(node, **options) as watcher:
                report = await watcher.run_pass()
                await watcher._give_up_charge()
                return report

        return asyncio.run(run())


@pytest.fixture
def gateway(open_store: Opener, home: Path, clock: FakeClock) -> Iterator[Gateway]:
    with guard_event_loop():
        gateway = Gateway(open_store(), home / "sessions", clock)
        yield gateway
        gateway.store.close()


def test_an_expired_session_is_finalized_once(gateway: Gateway) -> None:
    old = gateway.chat("1")
    gateway.clock.advance(HOUR_S)
    gateway.chat("2")
    report = gateway.run_pass()
    assert (report.is_in_charge, report.finalized, report.skipped) == (True, 1, 0)
    assert gateway.finalized == [old.session_id]
    assert gateway.row(old)["expiry_finalized"]
    assert (gateway.run_pass("n2").finalized, gateway.finalized) == (0, [old.session_id])


def test_a_session_that_was_used_again_is_finalized_again_when_it_expires(gateway: Gateway) -> None:
    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    gateway.run_pass()
    gateway.store.update_session(old.session_key)
    assert not gateway.row(old)["expiry_finalized"]
    assert gateway.run_pass().finalized == 0
    gateway.clock.advance(HOUR_S)
    assert gateway.run_pass().finalized == 1
    assert gateway.finalized == [old.session_id] * 2


def test_a_lane_with_a_running_turn_is_skipped(gateway: Gateway) -> None:
    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    accept(gateway, old)
    claim = gateway.db.turns.acquire(old.session_key, "n2", choose=lambda rows: [rows[0]["id"]])
    assert claim is not None
    report = gateway.run_pass()
    assert (report.finalized, report.skipped, gateway.finalized) == (0, 1, [])
    assert gateway.db.turns.running()[0]["turn_id"] == claim.turn_id


def test_a_lane_of_another_node_is_skipped(gateway: Gateway) -> None:
    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    claim = gateway.db.turns.acquire(old.session_key, "n1")  # the actor of the same node
    assert claim is not None
    assert gateway.run_pass("n1").skipped == 1
    gateway.db.turns.release(claim.lease)
    assert gateway.run_pass("n1").finalized == 1


def test_the_turn_of_a_dead_node_is_left_to_the_actors(gateway: Gateway) -> None:
    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    accept(gateway, old)
    claim = gateway.db.turns.acquire(old.session_key, "dead", 0.0, choose=lambda rows: [rows[0]["id"]])
    assert claim is not None
    assert gateway.run_pass().skipped == 1
    taken = gateway.db.turns.claim_next("n2")
    assert taken is not None
    assert taken.lost is not None


def test_a_lane_with_waiting_messages_is_skipped(gateway: Gateway) -> None:
    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    accept(gateway, old)
    assert gateway.run_pass().skipped == 1
    assert gateway.finalized == []
    taken = gateway.db.turns.claim_next("n2")
    assert taken is not None
    assert len(taken.messages) == 1


def test_a_lane_that_continues_after_a_restart_is_not_finalized(gateway: Gateway) -> None:
    old = gateway.chat()
    gateway.store.mark_resume_pending(old.session_key)
    gateway.clock.advance(HOUR_S)
    assert (gateway.run_pass().finalized, gateway.finalized) == (0, [])
    gateway.store.suspend_session(old.session_key)
    assert gateway.run_pass().finalized == 1


def test_a_lane_that_was_used_meanwhile_is_not_finalized(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    listed = list(gateway.store.expired_entries())
    gateway.store.update_session(old.session_key)
    monkeypatch.setattr(gateway.store, "expired_entries", lambda: iter(listed))
    assert (gateway.run_pass().skipped, gateway.finalized) == (1, [])
    gateway.clock.advance(HOUR_S)
    gateway.store.reset_session(old.session_key)
    gateway.clock.advance(HOUR_S)
    assert (gateway.run_pass().skipped, gateway.finalized) == (1, [])


def test_failures_are_counted_across_restarts_and_end_after_three(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(entry: SessionEntry, lease: Lease) -> None:
        raise RuntimeError("it cannot be finalized")

    old = gateway.chat("1")
    gateway.clock.advance(HOUR_S)
    gateway.during = fail
    reports = [gateway.run_pass(f"n{number}") for number in range(4)]
    assert [(each.failures, each.forced, each.finalized) for each in reports] == [
        *((1, 0, 0), (1, 0, 0), (1, 1, 0), (0, 0, 0)),
    ]
    assert (gateway.row(old)["expiry_failures"], gateway.row(old)["expiry_finalized"]) == (3, True)
    assert "counts as finalized after 3 failures" in caplog.text
    assert gateway.db.turns.acquire(old.session_key, "n9") is not None


def test_a_success_forgets_earlier_failures(gateway: Gateway) -> None:
    async def fail(entry: SessionEntry, lease: Lease) -> None:
        raise RuntimeError("not yet")

    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    gateway.during = fail
    gateway.run_pass()
    assert gateway.row(old)["expiry_failures"] == 1
    gateway.during = None
    gateway.run_pass()
    assert (gateway.row(old)["expiry_failures"], gateway.row(old)["expiry_finalized"]) == (0, True)


def test_an_unavailable_database_is_no_failure_of_the_session(gateway: Gateway) -> None:
    async def fail(entry: SessionEntry, lease: Lease) -> None:
        raise StoreBusy("the database is busy")

    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    gateway.during = fail
    report = gateway.run_pass()
    assert (report.skipped, report.failures, gateway.row(old)["expiry_failures"]) == (1, 0, 0)


def test_one_failing_session_does_not_stop_the_others(gateway: Gateway) -> None:
    bad, *others = (gateway.chat(str(user)) for user in range(8))
    gateway.clock.advance(HOUR_S)

    async def fail(entry: SessionEntry, lease: Lease) -> None:
        if entry.session_id == bad.session_id:
            raise RuntimeError("only this one")

    gateway.during = fail
    report = gateway.run_pass()
    assert (report.finalized, report.failures) == (7, 1)
    assert set(gateway.finalized) == {each.session_id for each in others}


def test_a_lost_lane_stops_the_work_on_it(gateway: Gateway) -> None:
    was_stopped = False
    old = gateway.chat()
    gateway.clock.advance(HOUR_S)

    async def lose(entry: SessionEntry, lease: Lease) -> None:
        nonlocal was_stopped
        turns = AsyncSessionDB(gateway.db).turns
        await turns.release(lease)
        assert await turns.acquire(entry.session_key, "n2") is not None
        try:
            await asyncio.sleep(30)
        finally:
            was_stopped = True

    gateway.during = lose
    report = gateway.run_pass(lease_s=0.3)
    assert (report.finalized, report.skipped, was_stopped) == (0, 1, True)
    assert (gateway.row(old)["expiry_finalized"], gateway.row(old)["expiry_failures"]) == (False, 0)


def test_the_lease_is_renewed_during_long_work(gateway: Gateway) -> None:
    gateway.chat()
    gateway.clock.advance(HOUR_S)

    async def take_long(entry: SessionEntry, lease: Lease) -> None:
        await asyncio.sleep(1.2)
        assert await AsyncSessionDB(gateway.db).turns.acquire(entry.session_key, "n2") is None

    gateway.during = take_long
    report = gateway.run_pass(lease_s=0.5)
    assert (report.finalized, report.failures) == (1, 0)


def test_only_the_node_in_charge_works(gateway: Gateway) -> None:
    gateway.chat()
    gateway.clock.advance(HOUR_S)

    async def run() -> None:
        async with gateway.watcher("n1") as first, gateway.watcher("n2") as second:
            connectors = AsyncSessionDB(gateway.db).connectors
            lease = await connectors.acquire(UPKEEP, "n2")
            assert lease is not None
            assert not (await first.run_pass()).is_in_charge
            assert gateway.finalized == []
            await connectors.release(lease)
            assert (await second.run_pass()).is_in_charge

    asyncio.run(run())
    assert len(gateway.finalized) == 1


def test_a_node_is_in_charge_only_while_there_is_work(gateway: Gateway) -> None:
    gateway.chat()

    async def run() -> None:
        async with gateway.watcher("n1") as watcher:
            connectors = AsyncSessionDB(gateway.db).connectors
            assert not (await watcher.run_pass()).is_in_charge
            gateway.clock.advance(HOUR_S)
            assert (await watcher.run_pass()).is_in_charge
            assert await connectors.holder(UPKEEP) is None

    asyncio.run(run())
    assert len(gateway.finalized) == 1


def test_two_nodes_at_once_finalize_each_session_once(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [gateway.chat(str(user)).session_id for user in range(24)]
    gateway.clock.advance(HOUR_S)

    async def in_charge(self: ExpiryWatcher) -> bool:
        return True

    async def pause(entry: SessionEntry, lease: Lease) -> None:
        await asyncio.sleep(0.01)

    monkeypatch.setattr(ExpiryWatcher, "_take_charge", in_charge)
    gateway.during = pause

    async def run() -> None:
        async with gateway.watcher("n1") as first, gateway.watcher("n2") as second:
            reports = await asyncio.gather(first.run_pass(), second.run_pass())
            assert sum(each.finalized for each in reports) == 24
            assert sum(each.failures for each in reports) == 0

    asyncio.run(run())
    assert Counter(gateway.finalized) == Counter(sessions)


def test_a_long_pass_is_continued_by_the_next_one(gateway: Gateway) -> None:
    for user in range(12):
        gateway.chat(str(user))
    gateway.clock.advance(HOUR_S)
    time = FakeClock(0.0)

    async def take_long(entry: SessionEntry, lease: Lease) -> None:
        time.advance(100)

    gateway.during = take_long
    first = gateway.run_pass(clock=time)
    assert first.is_cut
    assert 0 < first.finalized < 12
    passes = 1
    while gateway.run_pass(clock=time).is_cut:
        passes += 1
    assert len(set(gateway.finalized)) == len(gateway.finalized) == 12
    assert passes < 12


def test_old_lanes_are_pruned_once_in_an_hour(gateway: Gateway) -> None:
    time = FakeClock(0.0)

    async def run() -> None:
        async with gateway.watcher("n1", max_age_days=2, clock=time) as watcher:
            pruned = []
            for user in range(3):
                await asyncio.to_thread(gateway.chat, str(user))
                gateway.clock.advance(3 * 86_400)
                pruned.append((await watcher.run_pass()).pruned)
                time.advance(2000)
            assert pruned == [1, 0, 2]
            assert watcher.figures["pruned"] == 3

    asyncio.run(run())
    assert gateway.store.list_sessions() == []


def test_old_rows_are_removed(gateway: Gateway) -> None:
    entry = gateway.chat()
    accept(gateway, entry)
    claim = gateway.db.turns.acquire(entry.session_key, "n1", choose=lambda rows: [rows[0]["id"]])
    assert claim is not None
    assert claim.turn_id is not None
    gateway.db.turns.finish(claim.lease, claim.turn_id, intents=[Intent("k", {"text": "x"}, "telegram")])
    (row,) = gateway.db.outbox.sending("n1")
    gateway.db.outbox.sent(row["id"], row["attempts"])
    asked = gateway.db.approvals.request(entry.session_key, entry.session_id, "terminal", "{}", ttl_seconds=60)
    gateway.db.approvals.decide(asked["id"], False, "admin")
    gateway.db.quotas.add(["user:1"], "2020-01-01", tokens=5)
    accept(gateway, entry, "still waiting")

    async def run(days: float) -> dict[str, int]:
        swept = await Sweeps(AsyncSessionDB(gateway.db), dedupe_days=days, pause_s=0).run()
        return {name: count for name, count in swept.items() if count}

    assert asyncio.run(run(7)) == {"quotas": 1}
    assert asyncio.run(run(0)) == {"inbox": 1, "turns": 1, "outbox": 1, "approvals": 1}
    assert gateway.db.inbox.depth(entry.session_key) == 1


def test_requests_that_were_not_decided_in_time_are_reported_once(gateway: Gateway) -> None:
    entry, told = gateway.chat(), list[str]()
    request = gateway.db.approvals.request
    late = request(entry.session_key, entry.session_id, "terminal", "{}", ttl_seconds=1e-6)
    open_ = request(entry.session_key, entry.session_id, "terminal", "[]", ttl_seconds=60)

    def is_late() -> bool:
        row = gateway.db.approvals.get(late["id"])
        return row is not None and row["state"] == "expired"

    wait_until(is_late, "its time is over")

    async def tell(row: ApprovalRow) -> None:
        told.append(row["id"])

    async def run() -> None:
        sweeps = Sweeps(AsyncSessionDB(gateway.db), dedupe_days=7, pause_s=0, on_expired=tell)
        assert [(await sweeps.run())["expired approvals"] for _ in range(2)] == [1, 0]

    asyncio.run(run())
    assert told == [late["id"]]
    assert [row["id"] for row in gateway.db.approvals.pending()] == [open_["id"]]


def test_a_database_that_fails_while_a_chat_is_informed_costs_no_chat_the_end_of_its_request(gateway: Gateway) -> None:
    entry, told, failures = gateway.chat(), list[str](), [StoreBusy("the database is busy")]
    requests = [
        gateway.db.approvals.request(entry.session_key, entry.session_id, "terminal", text, ttl_seconds=1e-6)["id"]
        for text in ("{}", "[]")
    ]

    async def tell(row: ApprovalRow) -> None:
        if failures:
            raise failures.pop()
        told.append(row["id"])

    async def run() -> None:
        sweeps = Sweeps(AsyncSessionDB(gateway.db), dedupe_days=7, pause_s=0, on_expired=tell)
        await sweeps.run()
        await sweeps.run()

    wait_until(lambda: gateway.db.approvals.pending() == [], "their time is over")
    asyncio.run(run())
    assert sorted(told) == sorted(requests)


def test_a_failing_sweep_does_not_stop_the_others(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> int:
        raise StoreBusy("the database is busy")

    monkeypatch.setattr(type(gateway.db.inbox), "sweep", fail)
    report = gateway.run_pass(sweeps=Sweeps(AsyncSessionDB(gateway.db), dedupe_days=7), sweep_cache=lambda: 4)
    assert set(report.swept.values()) == {0}
    assert report.evicted == 4
    assert "old rows of inbox were not removed" in caplog.text


def test_the_watcher_runs_again_after_a_failure_and_gives_its_charge_back(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    old = gateway.chat()
    gateway.clock.advance(HOUR_S)
    expired, calls = gateway.store.expired_entries, 0

    def fail_first() -> Iterator[SessionEntry]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("the first pass fails")
        return expired()

    monkeypatch.setattr(gateway.store, "expired_entries", fail_first)

    async def run() -> None:
        async with gateway.watcher("n1", first_s=0.0, every_s=0.05) as watcher:
            task = asyncio.create_task(watcher.run())
            while not watcher.figures["finalized"]:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert gateway.finalized == [old.session_id]
    assert "the first pass fails" in caplog.text
    assert gateway.db.connectors.holder(UPKEEP) is None


def accept(gateway: Gateway, entry: SessionEntry, name: str = "m1") -> None:
    """Let a message wait in the lane of an entry."""
    gateway.db.inbox.accept(entry.session_key, {"text": name}, platform="telegram", chat_id="1", message_id=name)
