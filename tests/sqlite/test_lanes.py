"""Lanes in a file: how their queries find rows, that idle nodes write nothing, and that a repair finds queues again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.lanes.types import Intent, Keep
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.repair.consistency import ConsistencyRepair
from hermes_state import SessionDB
from tests.support.lanes import KEY, OTHER, accept, claim, names, reply, start_lane, turn_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the test's file."""
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[SessionDB]:
    """A store with two lanes, one of which has a turn that runs."""
    with SessionDB(path) as db:
        start_lane(db)
        for name, key in (("a", KEY), ("b", KEY), ("c", OTHER)):
            accept(db, name, key)
        claim(db)
        yield db


def plans(monkeypatch: pytest.MonkeyPatch, path: Path, call: Callable[[], object]) -> list[str]:
    """The plans of all statements of a call that do not look up a row by a key."""
    seen: set[str] = set()
    for name in ("rows", "run", "send"):
        method = getattr(View, name)

        def noted(self: View, sql: str, /, method: Callable[..., object] = method, **values: object) -> object:
            seen.add(sql)
            return method(self, sql, **values)

        monkeypatch.setattr(View, name, noted)
    call()
    monkeypatch.undo()
    found = []
    connection = apsw.Connection(str(path))
    for sql in seen:
        found += [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", _Nothing())]
    connection.close()
    return found


class _Nothing(dict[str, None]):
    """NULL for every parameter."""

    def __missing__(self, name: str) -> None:
        return None


def test_no_operation_of_a_turn_reads_a_whole_table(
    path: Path, store: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        accept(store, "d", OTHER)
        taken = claim(store)
        store.lanes.resolve(KEY, lambda *_: Keep())
        store.lanes.update(KEY, last_prompt_tokens=1)
        store.turns.progress(taken.lease, turn_of(taken))
        store.turns.finish(taken.lease, turn_of(taken), intents=[reply("r")])
        (row,) = store.outbox.sending("n1")
        store.outbox.sent(row["id"], 1)
        store.turns.claim_next("n2")
        store.lanes.recent(limit=5)
        store.lanes.idle(1e12, limit=5)
        store.lanes.find_by_session("s1")
        store.inbox.dead()
        store.inbox.find("a")
        store.turns.history(KEY)
        store.turns.running()
        accept(store, "e", "third")
        again = claim(store)
        store.turns.hold(again.lease, reason="stopped")
        store.turns.unhold(again.lease)
        store.turns.interrupt(again.lease, turn_of(again), intents=[reply("s")])
        store.turns.waiting_of("n1")
        store.turns.end_leases("n1")
        store.inbox.held(KEY)
        store.inbox.discard_waiting(KEY, "new session")
        store.outbox.next_due(["telegram"])
        store.outbox.awaiting("telegram")
        store.outbox.of_turn(turn_of(again))
        store.outbox.of_lane(KEY)
        store.outbox.drafts(0)
        store.outbox.expire_due()
        store.outbox.confirm(row["id"] + 1)
        store.lanes.resume_candidates()

    steps = plans(monkeypatch, path, work)
    assert len(steps) > 30
    assert [each for each in steps if each.startswith("SCAN") and "CONSTANT ROW" not in each] == []


LISTS: dict[str, tuple[Callable[[SessionDB], object], set[str]]] = {
    "resume_candidates": (lambda db: db.lanes.resume_candidates(), {"idx_lanes_resume"}),
    "busy_lanes": (
        lambda db: db.turns.busy_lanes("agent:"),
        {"idx_lane_queues_ready", "idx_lane_queues_lease"},
    ),
    "waiting_of": (lambda db: db.turns.waiting_of("n1"), {"idx_lane_queues_lease"}),
    "awaiting": (lambda db: db.outbox.awaiting("telegram"), {"idx_outbox_due"}),
    "awaiting after one": (lambda db: db.outbox.awaiting("telegram", after=7), set()),
    "drafts": (lambda db: db.outbox.drafts(0), {"idx_outbox_due"}),
    "drafts of a lane": (lambda db: db.outbox.drafts(0, key=KEY), {"idx_outbox_lane"}),
    "of_turn": (lambda db: db.outbox.of_turn("t"), {"idx_outbox_turn"}),
    "of_lane": (lambda db: db.outbox.of_lane(KEY), {"idx_outbox_lane"}),
    "next_due": (lambda db: db.outbox.next_due(), {"idx_outbox_due", "idx_outbox_lane"}),
    "expire_due": (lambda db: db.outbox.expire_due(), {"idx_outbox_due"}),
    "held": (lambda db: db.inbox.held(KEY), {"idx_inbox_lane"}),
}


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_list_is_read_by_the_index_that_has_only_its_rows(
    path: Path, store: SessionDB, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store.outbox.intend(reply("r", session_key=KEY))
    call, expected = LISTS[name]
    steps = plans(monkeypatch, path, lambda: call(store))
    assert {index for step in steps for index in re.findall(r"INDEX (idx_(?:lane|inbox|outbox)\w+)", step)} == expected


def test_an_idle_node_writes_nothing(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        start_lane(db)
        db.outbox.intend(Intent("waits for a client", {}, "local", ttl_seconds=3_600))
        db.outbox.intend(reply("later", delay_seconds=3_600))
        writer = apsw.Connection(str(tmp_path / "state.db"))
        before = writer.pragma("data_version")
        watch = db.turns.watch("n1")
        for _ in range(20):
            assert db.turns.claim_next("n1") is None
            assert db.outbox.sending("n1", exclude_platforms=["local"]) == []
            assert (db.outbox.expire_due(), db.turns.end_leases("n1"), db.turns.waiting_of("n1")) == ([], 0, {})
            assert db.outbox.next_due(["slack"]) is None
            assert db.inbox.sweep(0) == db.turns.sweep(0) == db.outbox.sweep(0) == 0
        assert not watch.wait(0.0)
        assert writer.pragma("data_version") == before
        watch.close()
        writer.close()


def test_a_repair_leaves_held_messages_held(path: Path, store: SessionDB) -> None:
    taken = store.turns.acquire("third", "n1")
    assert taken is not None
    accept(store, "h", "third", kind="queue")
    store.turns.hold(taken.lease, reason="stopped")
    store._engine.write(lambda tx: tx.run("DELETE FROM lane_queues"))
    store.close()
    connection = apsw.Connection(str(path))
    ConsistencyRepair(connection)._rebuild_queues()
    connection.close()
    with SessionDB(path) as db:
        assert (names(db.inbox.held("third")), db.inbox.depth("third")) == (["h"], 0)


def test_a_repair_finds_lost_queues_again(path: Path, store: SessionDB) -> None:
    store._engine.write(lambda tx: tx.run("DELETE FROM lane_queues"))
    store.close()
    connection = apsw.Connection(str(path))
    ConsistencyRepair(connection)._rebuild_queues()
    connection.close()
    with SessionDB(path) as db:
        order = []
        while (taken := db.turns.claim_next("n2", choose=turn_of_one)) is not None:
            order += names(taken.started)
            db.turns.finish(taken.lease, turn_of(taken))
        assert order == ["a", "b", "c"]
