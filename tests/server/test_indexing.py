"""The index follows the messages, and waits for nobody who is not there."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.server.provider import ServerProvider
from tests.support.conversations import say, start


def test_nothing_to_index_is_nothing_to_wait_for(store: ServerProvider[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        pytest.fail("it waited")

    monkeypatch.setattr("hermes.state.server.search.background_index.time.sleep", sleep)
    assert store.optimize_fts() > 0
    say(store, start(store, "s"), "hello")
    store.delete_with_receipt(["s"], secure=True)
    assert store.search_messages("hello") == []
