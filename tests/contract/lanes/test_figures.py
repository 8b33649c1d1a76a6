"""The figures of all lanes: what waits, what runs, and what needs an operator."""

from __future__ import annotations

from hermes.state.lanes.figures import count_held, read_figures
from hermes.state.provider import SessionDBProvider
from tests.support.lanes import KEY, OTHER, accept, claim, end_leases, reply, turn_of


def test_empty_store_has_no_work(store: SessionDBProvider) -> None:
    figures = read_figures(store)
    assert (figures.waiting_lanes, figures.waiting_messages, figures.oldest_waiting_at) == (0, 0, None)
    assert (figures.running_turns, figures.leases, figures.ended_leases) == (0, {}, {})
    assert (figures.dead_inbox, figures.dead_outbox, figures.undelivered) == ({}, {}, 0)
    assert (figures.oldest_undelivered_at, count_held(store)) == (None, 0)


def test_waiting_messages_of_free_and_leased_lanes_are_counted(store: SessionDBProvider) -> None:
    for name, key in (("a", KEY), ("b", KEY), ("c", KEY), ("d", OTHER)):
        accept(store, name, key)
    claim(store)
    figures = read_figures(store)
    assert (figures.waiting_lanes, figures.waiting_messages, figures.running_turns) == (2, 3, 1)
    assert figures.leases == {"n1": 1}
    (oldest,) = store.inbox.find("b")
    assert figures.oldest_waiting_at == oldest["accepted_at"] <= figures.now


def test_lease_that_has_ended_is_counted_apart(store: SessionDBProvider) -> None:
    accept(store, "a", KEY)
    accept(store, "b", OTHER)
    claim(store, "n1")
    end_leases(store)
    claim(store, "n2")  # it takes one of both lanes
    figures = read_figures(store)
    assert sum(figures.leases.values()) == 1
    assert figures.running_turns >= 1
    claim(store, "n2")
    assert (read_figures(store).leases, read_figures(store).ended_leases) == ({"n2": 2}, {})
    end_leases(store)
    assert (read_figures(store).leases, read_figures(store).ended_leases) == ({}, {"n2": 2})


def test_held_messages_are_counted_apart(store: SessionDBProvider) -> None:
    accept(store, "a")
    accept(store, "b", kind="queue")
    taken = claim(store)
    store.turns.hold(taken.lease, reason="stopped")
    assert (read_figures(store).waiting_messages, count_held(store)) == (0, 1)


def test_letters_of_both_directions_are_counted_by_state(store: SessionDBProvider) -> None:
    accept(store, "a")
    taken = claim(store)
    store.turns.park(taken.lease, turn_of(taken), "too often", intents=[reply("k1"), reply("k2"), reply("k3")])
    first = store.outbox.find("k1")
    assert first is not None
    store.outbox.expire(first["id"])
    figures = read_figures(store)
    assert (figures.dead_inbox, figures.dead_outbox, figures.undelivered) == ({"parked": 1}, {"expired": 1}, 2)
    assert figures.oldest_undelivered_at is not None
    assert figures.oldest_undelivered_at <= figures.now
