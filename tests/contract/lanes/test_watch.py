"""Waiting for work: a watch returns when a lane can be claimed or a message comes, and only reads."""

from __future__ import annotations

import threading

from hermes.state.provider import SessionDBProvider
from tests.support.lanes import KEY, accept, claim, end_leases, turn_of
from tests.support.stores import Opener
from tests.support.waiting import LIMIT_S


def test_a_watch_returns_at_once_if_there_is_work(store: SessionDBProvider) -> None:
    accept(store, "a")
    watch = store.turns.watch("n1")
    assert watch.wait(0.0)
    taken = claim(store)
    assert not watch.wait(0.0)
    store.turns.finish(taken.lease, turn_of(taken))
    assert not watch.wait(0.0)
    watch.close()


def test_a_watch_sees_a_message_for_a_lane_that_its_node_has(store: SessionDBProvider) -> None:
    accept(store, "a")
    claim(store)
    watch = store.turns.watch("n1")
    accept(store, "b", kind="steer")
    assert [watch.wait(0.0), watch.wait(0.0)] == [True, False]
    assert [row["kind"] for row in store.inbox.waiting(KEY)] == ["steer"]


def test_a_watch_sees_a_lease_that_has_ended(store: SessionDBProvider) -> None:
    accept(store, "a")
    claim(store)
    watch = store.turns.watch("n1")
    assert not watch.wait(0.0)
    end_leases(store)
    assert watch.wait(0.0)


def test_a_message_of_another_process_ends_the_wait(open_store: Opener) -> None:
    store, other = open_store(), open_store()
    watch, woken = store.turns.watch("n1"), list[bool]()
    waiting = threading.Thread(target=lambda: woken.append(watch.wait(LIMIT_S)))
    waiting.start()
    accept(other, "a")
    waiting.join(LIMIT_S)
    assert woken == [True]


def test_closing_ends_the_wait(store: SessionDBProvider) -> None:
    watch, woken = store.turns.watch("n1"), list[bool]()
    waiting = threading.Thread(target=lambda: woken.append(watch.wait(LIMIT_S)))
    waiting.start()
    watch.close()
    watch.close()
    waiting.join(LIMIT_S)
    assert woken == [False]
