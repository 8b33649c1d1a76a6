"""The index is updated after the messages, without needless waiting."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.server.provider import ServerProvider
from tests.support.conversations import say, start


def test_indexing_without_messages_does_not_wait(store: ServerProvider[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        pytest.fail("it waited")

    monkeypatch.setattr("hermes.state.server.search.background_index.time.sleep", sleep)
    assert store.optimize_fts() > 0
    say(store, start(store, "s"), "hello")
    store.delete_with_receipt(["s"], secure=True)
    assert store.search_messages("hello") == []
