"""The size of a store, by which recall decides how rare a word is."""

from __future__ import annotations

import time

import pytest

from hermes.state.owner import EVERYBODY, Asker, parse_asker
from hermes.state.provider import SessionDBProvider
from hermes.state.recall import store_size
from hermes.state.recall.store_size import StoreSize
from hermes.state.search.context import SearchContext
from hermes.state.search.scope import Scope
from hermes.state.waits import Waits
from tests.support.conversations import say, start
from tests.support.stores import engine_of

ALICE = "telegram:1"


def size_of(store: SessionDBProvider, owner: Asker = EVERYBODY) -> StoreSize:
    """The size that a search of now would use."""
    engine = engine_of(store)
    deadline = time.monotonic() + 10
    return engine.read(
        lambda tx: StoreSize.read(SearchContext(tx, engine.index, Scope(owner=owner), deadline, Waits(10)))
    )


def fill(store: SessionDBProvider, count: int, name: str = "s") -> None:
    for number in range(count):
        start(store, f"{name}{number}", source="telegram", user_id=str(number % 2))
        say(store, f"{name}{number}", "a message")


def test_sessions_of_a_small_store_are_counted_in_every_search(store: SessionDBProvider) -> None:
    fill(store, 3)
    assert size_of(store) == StoreSize(3, 3)
    fill(store, 2, "t")
    assert size_of(store) == StoreSize(5, 5)


def test_count_of_a_large_store_is_used_again_for_a_while(
    store: SessionDBProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_size, "LARGE", 3)
    fill(store, 3)
    assert size_of(store).sessions == 3
    fill(store, 2, "t")
    assert size_of(store).sessions == 3
    monkeypatch.setattr(store_size, "KEPT_S", 0.0)
    assert size_of(store).sessions == 5


def test_size_of_an_owner_is_that_of_the_own_sessions(store: SessionDBProvider) -> None:
    fill(store, 5)
    assert size_of(store, parse_asker(ALICE)) == StoreSize(2, 2)
