"""Lanes, inbox, turns and outbox are copied too; what a node was working on waits in the target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.state.lanes.types import LaneRow
from hermes.state.provider import SessionDBProvider
from hermes.state.transfer.lane_tables import compare_lanes
from hermes.state.transfer.migration import Migration
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.support.lanes import KEY, OTHER, accept, broken_rules, claim, names, reply, start_lane, turn_of
from tests.transfer.contents import migrate

LONG = "x" * 3_000 + "\0"


@pytest.fixture
def gateway(tmp_path: Path, clock: FakeClock) -> Iterator[SessionDB]:
    """A file with lanes: messages in every state, a turn that runs, and replies."""
    with SessionDB(tmp_path / "gateway.db", clock=clock) as store:
        start_lane(store, fields={"origin": {"chat": "1"}, "display_name": "A\0da", "suspended": True})
        start_lane(store, OTHER, "s2")
        start_lane(store, LONG, "s3")
        for name in ("done", "parked", "dead", "running"):
            accept(store, name)
        accept(store, "waits", OTHER)
        accept(store, "long " + LONG, LONG)
        taken = claim(store)
        store.turns.finish(taken.lease, turn_of(taken), intents=[reply("sent"), reply("pending")])
        taken = claim(store)
        store.turns.park(taken.lease, turn_of(taken), "w\0hy")
        for _ in range(3):
            taken = claim(store, seconds=60)
            store.turns.fail(taken.lease, turn_of(taken), "poison")
        taken = claim(store)
        store.turns.progress(taken.lease, turn_of(taken), {"step": 1})
        (row,) = store.outbox.sending("n1", limit=1)
        store.outbox.sent(row["id"], 1, {"id": 5})
        store.outbox.intend(reply("draft", draft=True))
        held = store.turns.acquire("held lane", "n1")
        assert held is not None
        accept(store, "held", "held lane", kind="queue")
        store.turns.hold(held.lease, reason="stopped")
        yield store


def without_place(row: Any) -> Any:
    """A row without what differs between stores."""
    return {name: value for name, value in row.items() if name not in ("id", "cursor")}


def everything(store: SessionDBProvider) -> list[Any]:
    """What a store has, in the order of a gateway."""
    rows: list[LaneRow] = store.lanes.recent(limit=None)
    found: list[Any] = [without_place(row) for row in sorted(rows, key=lambda row: row["session_key"])]
    for name in ("done", "parked", "dead", "waits", "held", "long " + LONG):
        found += [without_place(row) for row in store.inbox.find(name)]
    listed = (*store.inbox.dead(), *store.outbox.pending(), *store.outbox.dead(), *store.outbox.drafts(0))
    return found + [without_place(row) for row in listed]


def test_everything_but_leases_is_copied(gateway: SessionDB, target: SessionDBProvider) -> None:
    migrate(gateway, target)
    assert everything(target) == everything(gateway)
    assert list(compare_lanes(gateway, target)) == []
    assert broken_rules(target) == []
    (running,) = target.inbox.find("running")
    assert (running["state"], running["attempts"]) == ("accepted", 1)
    assert [row["state"] for row in target.turns.history(KEY)][:1] == ["lost"]
    assert target.inbox.totals().leased == 0


def test_the_target_continues_in_order_and_recognizes_messages(gateway: SessionDB, target: SessionDBProvider) -> None:
    migrate(gateway, target)
    assert {accept(target, name).state for name in ("done", "parked", "running")} == {"known"}
    order = []
    while (taken := target.turns.claim_next("n9", choose=lambda rows: [rows[0]["id"]])) is not None:
        order += names(taken.started)
        target.turns.finish(taken.lease, turn_of(taken))
    assert order == ["running", "waits", "long " + LONG]


def test_a_second_run_copies_what_changed_and_not_what_the_target_did(
    gateway: SessionDB, target: SessionDBProvider, clock: FakeClock
) -> None:
    migrate(gateway, target)
    clock.advance(1)
    taken = target.turns.claim_next("n9", choose=lambda rows: [rows[0]["id"]])
    assert taken is not None
    target.turns.finish(taken.lease, turn_of(taken), intents=[reply("here")])
    accept(gateway, "new", OTHER)
    migrate(gateway, target)
    assert names(target.inbox.waiting(OTHER)) == ["waits", "new"]
    assert [row["state"] for row in target.inbox.find("running")] == ["done"]
    assert [each for each in compare_lanes(gateway, target) if not each.is_ahead] == []
    assert broken_rules(target) == []


def test_a_resumed_run_lets_messages_wait_that_are_not_held_any_more(
    gateway: SessionDB, target: SessionDBProvider
) -> None:
    migration = Migration(gateway, target)
    migration.begin(resume=False)
    migration.copy_all()
    assert [row["state"] for row in target.inbox.find("held")] == ["held"]
    gateway._engine.write(lambda tx: tx.run("UPDATE inbox SET state = 'accepted' WHERE state = 'held'"))
    migrate(gateway, target, resume=True)
    assert (names(target.inbox.waiting("held lane")), broken_rules(target)) == (["held"], [])


def test_a_difference_is_reported(gateway: SessionDB, target: SessionDBProvider) -> None:
    migrate(gateway, target)
    target._engine.write(lambda tx: tx.run("DELETE FROM outbox"))
    target._engine.write(lambda tx: tx.run("UPDATE lanes SET display_name = 'other' WHERE session_id = 's1'"))
    found = [(each.session_id, each.what) for each in compare_lanes(gateway, target)]
    assert found == [("lanes", "differs in 1 lane"), ("outbox", "lacks 3 outbox messages")]


def test_a_store_without_these_tables_is_copied(tmp_path: Path, target: SessionDBProvider) -> None:
    with SessionDB(tmp_path / "old.db") as store:
        store.create_session("s", "cli")
        store._engine.write(lambda tx: tx.run("DELETE FROM hermes_ledger WHERE name LIKE '%lanes'"))
        migrate(store, target)
    assert (target.lanes.count(), target.session_count()) == (0, 1)
