"""The index is updated after the messages, without needless waiting."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hermes.state.server.provider import ServerProvider
from hermes.state.server.search.background_index import IndexedEngine, Progress
from hermes.state.server.search.index_rows import BATCH_BYTES
from tests.support.conversations import say, start
from tests.support.stores import engine_of
from tests.support.waiting import wait_until


def test_indexing_without_messages_does_not_wait(store: ServerProvider[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        pytest.fail("it waited")

    monkeypatch.setattr("hermes.state.server.search.background_index.time.sleep", sleep)
    assert store.optimize_fts() > 0
    say(store, start(store, "s"), "hello")
    store.delete_with_receipt(["s"], secure=True)
    assert store.search_messages("hello") == []


def test_long_messages_are_indexed_in_several_transactions(store: ServerProvider[Any]) -> None:
    start(store, "s")
    messages = [{"role": "user", "content": f"number{each} " + 50_000 * "x "} for each in range(45)]
    found = store.append_messages("s", messages)
    engine = cast("IndexedEngine[Any, Any]", engine_of(store))
    done: list[Progress] = []

    def is_indexed() -> bool:
        done.append(engine._index_batch())
        return done[-1].upto == found[-1]

    wait_until(is_indexed, "all messages to be indexed")
    in_batches = [each.messages for each in done if each.messages]
    assert max(in_batches) <= BATCH_BYTES // 100_000
    assert all(each.has_more == (each.upto != found[-1]) for each in done if each.messages)
    assert store.search_messages("number33")[0]["id"] == found[33]


def test_a_message_longer_than_a_batch_is_indexed(store: ServerProvider[Any]) -> None:
    start(store, "s")
    found = store.append_messages(
        "s", [{"role": "user", "content": f"n{each} " + 3_000_000 * "x"} for each in range(2)]
    )
    cast("IndexedEngine[Any, Any]", engine_of(store)).catch_up()
    assert [row["id"] for row in store.search_messages("n1")] == found[1:]


def test_changed_long_messages_are_indexed_in_several_transactions(store: ServerProvider[Any]) -> None:
    start(store, "s")
    texts = [f"number{each} " + 50_000 * "x " for each in range(45)]
    store.append_messages("s", [{"role": "user", "content": each} for each in texts])
    engine = cast("IndexedEngine[Any, Any]", engine_of(store))
    engine.catch_up()
    engine.write(lambda tx: tx.run("UPDATE messages SET content = CONCAT('lantern ', content)"))
    done = engine._index_batch()
    assert 1 <= done.messages <= BATCH_BYTES // 100_000
    assert done.has_more
    engine.catch_up()
    assert len(store.search_messages("lantern", limit=100)) == len(texts)
