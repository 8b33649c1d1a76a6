"""A store of the version before lanes: it gets the tables when it is opened for writing."""

from __future__ import annotations

from hermes.state.engine import Capability
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


def test_a_file_without_lanes_can_be_read(open_store: Opener) -> None:
    store = open_store()
    is_file = Capability.FILE in store.capabilities
    store.create_session("old", "telegram", user_id="1")
    if is_file:
        take_lanes_away(store)
    read_only = open_store(read_only=True)
    assert (read_only.lanes.get(KEY), read_only.lanes.recent(), read_only.turns.running()) == (None, [], [])
