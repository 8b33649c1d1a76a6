"""Approvals, quotas and fenced writes in a file: how their queries find rows, and what a repair does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from hermes.state.lanes.quotas import QuotaLimits
from hermes.state.owner import EVERYBODY
from hermes.state.sqlite.repair.repair import FileCondition, repair
from hermes_state import SessionDB
from tests.sqlite.test_lanes import plans
from tests.support.lanes import KEY, start_lane

DAY = "2026-01-31"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the test's file."""
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[SessionDB]:
    """A store with a lane."""
    with SessionDB(path) as db:
        start_lane(db)
        yield db


def overdue(db: SessionDB) -> None:
    """Request an approval whose time is over."""
    db.approvals.request(KEY, "s1", "terminal", "overdue", ttl_seconds=600)
    db._engine.write(lambda tx: tx.run("UPDATE approvals SET expires_at = 1 WHERE arguments = 'overdue'"))


def decided(db: SessionDB) -> None:
    """Request an approval and deny it."""
    row = db.approvals.request(KEY, "s1", "terminal", "denied", ttl_seconds=600)
    db.approvals.decide(row["id"], False, "ann")


LOOKUP = "INDEX sqlite_autoindex_usage_days_1 (id"
CALLS: dict[str, tuple[Callable[[SessionDB], object], Callable[[SessionDB], object], set[str]]] = {
    "get": (overdue, lambda db: db.approvals.get("AAAAAA"), {"idx_approvals_id (id=?)"}),
    "pending": (overdue, lambda db: db.approvals.pending(), {"idx_approvals_state (state=? AND number>?)"}),
    "pending of a lane": (
        overdue,
        lambda db: db.approvals.pending(session_key=KEY),
        {"idx_approvals_lane (lane_id=? AND state=? AND number>?)"},
    ),
    "decide": (overdue, lambda db: db.approvals.decide("AAAAAA", True, "ann"), {"idx_approvals_id (id=?)"}),
    "use": (overdue, lambda db: db.approvals.use("AAAAAA", "d"), {"idx_approvals_id (id=?)"}),
    "expire_due": (overdue, lambda db: db.approvals.expire_due(), {"idx_approvals_due (state=? AND expires_at<?)"}),
    "sweep": (decided, lambda db: db.approvals.sweep(0), {"idx_approvals_decided (decided_at>? AND decided_at<?)"}),
    "request": (
        overdue,
        lambda db: db.approvals.request(KEY, "s1", "terminal", "new", ttl_seconds=600),
        {"idx_approvals_open (open_digest=?)", "idx_approvals_id (id=?)"},
    ),
    "begin": (overdue, lambda db: db.quotas.begin({"u": QuotaLimits()}, DAY), {f"{LOOKUP}=?)"}),
    "sweep of quotas": (overdue, lambda db: db.quotas.sweep(DAY), {f"{LOOKUP}<?)"}),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_rows_are_found_by_an_index(path: Path, store: SessionDB, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    prepare, call, expected = CALLS[name]
    prepare(store)
    steps = plans(monkeypatch, path, lambda: call(store))
    assert [step for step in steps if step.startswith("SCAN") and "CONSTANT ROW" not in step] == []
    for each in expected:
        assert any(each in step for step in steps), steps


def test_the_check_of_a_lease_reads_one_row(path: Path, store: SessionDB, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = store.turns.acquire(KEY, "n1")
    assert taken is not None
    fenced = store.for_owner(EVERYBODY).fenced(taken.lease)
    steps = plans(monkeypatch, path, lambda: fenced.set_session_title("s1", "A title"))
    found = [step for step in steps if "lane_queues" in step]
    assert found == ["SEARCH lane_queues USING INDEX sqlite_autoindex_lane_queues_1 (lane_id=?)"]


def test_a_call_that_finds_nothing_writes_nothing(path: Path, store: SessionDB) -> None:
    store.approvals.request(KEY, "s1", "terminal", "{}", ttl_seconds=600)
    with apsw.Connection(str(path)) as other:
        before = other.pragma("data_version")
        for _ in range(20):
            assert store.approvals.expire_due() == []
            assert (store.approvals.sweep(0), store.quotas.sweep(DAY)) == (0, 0)
        assert other.pragma("data_version") == before
    other.close()


def test_a_repair_drops_approvals_whose_session_is_lost(path: Path, store: SessionDB) -> None:
    start_lane(store, "other", "s2")
    kept = store.approvals.request(KEY, "s1", "terminal", "{}", ttl_seconds=600)
    store.approvals.request("other", "s2", "terminal", "{}", ttl_seconds=600)
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = off; DELETE FROM sessions WHERE id = 's2'")
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'idx_inbox_ref'").get
    size = connection.pragma("page_size")
    connection.pragma("wal_checkpoint(truncate)")
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    assert repair(path).condition is FileCondition.REPAIRED
    with SessionDB(path) as again:
        assert again.approvals.pending() == [kept]
