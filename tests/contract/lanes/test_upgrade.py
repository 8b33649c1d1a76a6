"""A store of the version before lanes: it gets the tables when it is opened for writing."""

from __future__ import annotations

from hermes.state.engine import Capability
from hermes.state.lanes.quotas import QuotaLimits, QuotaUsage
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import KEY, accept, claim, start_lane, turn_of
from tests.support.stores import Opener

TABLES = ("lanes", "lane_queues", "inbox", "turns", "outbox", "connector_leases")


def take_lanes_away(store: SessionDBProvider) -> None:
    """Make a store like one that never had lanes."""
    for table in TABLES:
        store._engine.write(lambda tx, table=table: tx.run(f"DROP TABLE {table}"))  # type: ignore[misc]
    store._engine.write(lambda tx: tx.run("DELETE FROM hermes_ledger WHERE name LIKE '%_lanes'"))
    store.close()


def take_approvals_away(store: SessionDBProvider) -> None:
    """Make a store like one that never had approvals and quotas."""
    for table in ("approvals", "usage_days"):
        store._engine.write(lambda tx, table=table: tx.run(f"DROP TABLE {table}"))  # type: ignore[misc]
    store._engine.write(lambda tx: tx.run("DELETE FROM hermes_ledger WHERE name LIKE '%_approvals'"))
    store.close()


def test_a_store_without_lanes_gets_them_when_it_is_opened(open_store: Opener) -> None:
    store = open_store()
    store.create_session("old", "telegram", user_id="1")
    store.append_message("old", "user", "hello")
    take_lanes_away(store)
    again = open_store()
    start_lane(again)
    accept(again, "a")
    taken = claim(again)
    again.turns.finish(taken.lease, turn_of(taken))
    assert (again.lanes.count(), again.message_count("old")) == (1, 1)
    assert again.lanes.switch(KEY, "old", owner="telegram:1") is not None


def test_a_store_without_approvals_and_quotas_gets_them_when_it_is_opened(open_store: Opener) -> None:
    store = open_store()
    start_lane(store)
    take_approvals_away(store)
    again = open_store()
    row = again.approvals.request(KEY, "s1", "terminal", "{}", ttl_seconds=60)
    assert again.approvals.pending() == [row]
    assert again.quotas.begin({"user": QuotaLimits(turns=1)}, "2026-01-31") is None
    taken = again.turns.acquire(KEY, "n1")
    assert taken is not None
    again.for_owner(EVERYBODY).fenced(taken.lease).append_message("s1", "user", "hello")


def test_a_file_without_approvals_and_quotas_can_be_read(open_store: Opener) -> None:
    store = open_store()
    start_lane(store)
    if Capability.FILE in store.capabilities:
        take_approvals_away(store)
    read_only = open_store(read_only=True)
    assert (read_only.approvals.pending(), read_only.approvals.get("AAAAAA")) == ([], None)
    assert read_only.quotas.read("user", "2026-01-31") == QuotaUsage()


def test_a_file_without_lanes_can_be_read(open_store: Opener) -> None:
    store = open_store()
    is_file = Capability.FILE in store.capabilities
    store.create_session("old", "telegram", user_id="1")
    if is_file:
        take_lanes_away(store)
    read_only = open_store(read_only=True)
    assert (read_only.lanes.get(KEY), read_only.lanes.recent(), read_only.turns.running()) == (None, [], [])
