"""The disk usage of a store."""

from __future__ import annotations

from hermes.state.engine import Capability
from hermes.state.maintenance.disk_usage import measure_disk_usage
from hermes.state.provider import SessionDBProvider
from tests.support.conversations import say, start

LIMIT_S = 60.0


def test_messages_index_and_the_rest_are_measured_separately(store: SessionDBProvider) -> None:
    start(store, "a")
    say(store, "a", *(f"words number {number} and more of them" for number in range(200)))
    store.optimize_fts()
    room = measure_disk_usage(store, LIMIT_S)
    assert room is not None
    assert min(room.text, room.search, room.other) > 0
    assert room.indexes >= 0
    assert (room.free is None) == (Capability.SERVER in store.capabilities)
    assert room.total == room.text + room.search + room.indexes + room.other + (room.free or 0)


def test_more_text_takes_more_space(store: SessionDBProvider) -> None:
    if Capability.SERVER in store.capabilities:
        return  # a server may report older statistics
    start(store, "a")
    before = measure_disk_usage(store, LIMIT_S)
    say(store, "a", "long " * 100_000)
    after = measure_disk_usage(store, LIMIT_S)
    assert before is not None
    assert after is not None
    assert after.text - before.text >= 490_000


def test_measuring_stops_at_the_time_limit(store: SessionDBProvider) -> None:
    if Capability.SERVER in store.capabilities:
        assert measure_disk_usage(store, -1.0) is not None
    else:
        assert measure_disk_usage(store, -1.0) is None
