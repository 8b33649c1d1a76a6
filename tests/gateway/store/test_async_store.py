"""The same operations on an event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from hermes.gateway import AsyncSessionStore, Platform, SessionSource, SessionStore
from hermes.state.loop_guard import guard_event_loop
from tests.gateway.store.conftest import MakeStore

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7")
KEY = "agent:main:telegram:dm:1"


@pytest.fixture(autouse=True)
def guarded_loop() -> Iterator[None]:
    """Let every store raise that is used on the thread of an event loop."""
    with guard_event_loop():
        yield


def test_every_operation_exists_on_the_event_loop() -> None:
    names = {name for name, each in inspect.getmembers(SessionStore, callable) if not name.startswith("_")}
    assert names == {name for name in dir(AsyncSessionStore) if not name.startswith("_")}


def test_operations_return_what_the_store_returns(make_store: MakeStore) -> None:
    inner = make_store()

    async def use() -> None:
        async with AsyncSessionStore(inner) as store:
            assert await store.peek(ALICE) is None
            entry = await store.get_or_create_session(ALICE)
            assert await store.peek(ALICE) == entry
            await store.append_to_transcript(entry.session_id, {"role": "user", "content": "hi"})
            assert [message["content"] for message in await store.load_transcript(entry.session_id)] == ["hi"]
            assert await store.rewind_session(entry.session_id, n=1) == {
                "rewound_count": 1,
                "turns_undone": 1,
                "target_text": "hi",
            }
            assert await store.suspend_session(KEY) is True
            assert (await store.get_or_create_session(ALICE)).auto_reset_reason == "suspended"
            assert [each.session_key for each in await store.list_sessions()] == [KEY]
            assert await store.expired_entries() == []

    asyncio.run(use())


def test_many_first_messages_at_once_make_one_session(make_store: MakeStore) -> None:
    inner = make_store()

    async def use() -> set[str]:
        async with AsyncSessionStore(inner) as store:
            entries = await asyncio.gather(*(store.get_or_create_session(ALICE) for _ in range(20)))
            return {entry.session_id for entry in entries}

    assert len(asyncio.run(use())) == 1
