"""Approvals and quotas are copied too, and the target keeps what was decided and used there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.lanes.quotas import QuotaLimits
from hermes.state.provider import SessionDBProvider
from hermes.state.transfer.lane_tables import compare_lanes
from hermes.state.transfer.migration import Migration
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.support.lanes import KEY, OTHER, start_lane
from tests.transfer.contents import migrate

DAY = "2026-01-31"
LONG = "x" * 500 + "\0"


@pytest.fixture
def gateway(tmp_path: Path, clock: FakeClock) -> Iterator[SessionDB]:
    """A file with two pending approvals, a used one, and what two scopes have used."""
    with SessionDB(tmp_path / "gateway.db", clock=clock) as store:
        start_lane(store)
        start_lane(store, OTHER, "s2")
        for arguments in ("{}", "nul \0", '{"a": 1}'):
            store.approvals.request(
                LONG, "s1", "terminal", arguments, ttl_seconds=600, owner="telegram:1", detail="d\0"
            )
        used = store.approvals.request(KEY, "s2", "terminal", "{}", ttl_seconds=600)
        store.approvals.decide(used["id"], True, "ann", "session")
        store.approvals.use(used["id"], used["digest"])
        store.quotas.begin({"user": QuotaLimits(), LONG: QuotaLimits()}, DAY)
        store.quotas.add(["user"], DAY, tokens=5, cost_usd=0.25)
        yield store


def everything(store: SessionDBProvider) -> tuple[list[object], list[object], list[object]]:
    """The approvals of a store in their order, without their numbers, and its quotas."""
    pending: list[object] = [{**row, "number": 0} for row in store.approvals.pending()]
    sql = "SELECT id, digest, open_digest, state, scope, decided_by FROM approvals WHERE state = 'used'"
    used: list[object] = [*store._engine.read(lambda tx: tx.rows(sql))]
    return pending, used, [store.quotas.read(scope, DAY) for scope in ("user", LONG)]


def test_everything_is_copied_in_order(gateway: SessionDB, target: SessionDBProvider) -> None:
    migrate(gateway, target)
    assert everything(target) == everything(gateway)
    assert [len(each) for each in everything(target)] == [3, 1, 2]
    assert list(compare_lanes(gateway, target)) == []


def test_the_target_keeps_its_decisions_and_what_was_used_there(gateway: SessionDB, target: SessionDBProvider) -> None:
    migration = Migration(gateway, target)
    migration.begin(resume=False)
    migration.copy_all()
    first, second, _ = target.approvals.pending()
    target.approvals.decide(first["id"], True, "ann")
    target.quotas.begin({"user": QuotaLimits()}, DAY)
    gateway.approvals.decide(second["id"], False, "bob")
    gateway.quotas.add([LONG], DAY, tokens=9)
    migrate(gateway, target, resume=True)
    states = [row["state"] for row in map(target.approvals.get, (first["id"], second["id"])) if row is not None]
    assert states == ["approved", "denied"]
    assert (target.quotas.read("user", DAY).turns, target.quotas.read(LONG, DAY).tokens) == (2, 9)
    found = {(each.session_id, each.is_ahead) for each in compare_lanes(gateway, target)}
    assert found == {("approvals", True), ("usage_days", True)}


@pytest.mark.parametrize("is_used_here", [True, False])
def test_an_approval_that_was_used_is_not_given_back(
    gateway: SessionDB, target: SessionDBProvider, is_used_here: bool
) -> None:
    row = gateway.approvals.pending()[0]
    gateway.approvals.decide(row["id"], True, "ann")
    migration = Migration(gateway, target)
    migration.begin(resume=False)
    migration.copy_all()
    assert (gateway if is_used_here else target).approvals.use(row["id"], row["digest"])
    migrate(gateway, target, resume=True)
    assert not target.approvals.use(row["id"], row["digest"])


def test_the_same_request_in_both_stores_is_kept_twice(gateway: SessionDB, target: SessionDBProvider) -> None:
    start_lane(target)
    own = target.approvals.request(LONG, "s1", "terminal", "{}", ttl_seconds=600)
    migrate(gateway, target)
    assert [row["arguments"] for row in target.approvals.pending()] == ["{}", "{}", "nul \0", '{"a": 1}']
    assert target.approvals.request(LONG, "s1", "terminal", "{}", ttl_seconds=600) == own


def test_a_difference_is_reported(gateway: SessionDB, target: SessionDBProvider) -> None:
    migrate(gateway, target)
    target._engine.write(lambda tx: tx.run("DELETE FROM usage_days WHERE scope = 'user'"))
    target._engine.write(lambda tx: tx.run("UPDATE approvals SET summary = 'other' WHERE state = 'used'"))
    found = [(each.session_id, each.what) for each in compare_lanes(gateway, target)]
    assert found == [("approvals", "differs in 1 approval"), ("usage_days", "lacks 1 day of a quota")]


def test_a_store_without_these_tables_is_copied(tmp_path: Path, target: SessionDBProvider) -> None:
    with SessionDB(tmp_path / "old.db") as store:
        start_lane(store)
        for table in ("approvals", "usage_days"):
            store._engine.write(lambda tx, table=table: tx.run(f"DROP TABLE {table}"))  # type: ignore[misc]
        store._engine.write(lambda tx: tx.run("DELETE FROM hermes_ledger WHERE name LIKE '%_approvals'"))
        migrate(store, target)
    assert (target.lanes.count(), target.approvals.pending()) == (1, [])
