"""Topics of Telegram chats are copied too, and the target keeps its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from hermes.state.transfer.lane_tables import compare_lanes
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.transfer.contents import migrate


def bind(store: SessionDBProvider, thread: str, session: str) -> None:
    store.bind_telegram_topic(chat_id="1", thread_id=thread, user_id="1", session_key="k", session_id=session)


@pytest.fixture
def chats(tmp_path: Path, clock: FakeClock) -> Iterator[SessionDB]:
    """A file with two topics of a chat."""
    with SessionDB(tmp_path / "chats.db", clock=clock) as store:
        store.enable_telegram_topic_mode(chat_id="1", user_id="1", has_topics_enabled=True)
        for session, thread in (("s", "11"), ("t", "12")):
            store.create_session(session, "telegram", user_id="1")
            bind(store, thread, session)
        yield store


def test_topics_are_copied(chats: SessionDB, target: SessionDBProvider) -> None:
    migrate(chats, target)
    assert target.is_telegram_topic_mode_enabled(chat_id="1", user_id="1")
    rows = chats.list_telegram_topic_bindings_for_chat(chat_id="1")
    assert target.list_telegram_topic_bindings_for_chat(chat_id="1") == rows
    assert list(compare_lanes(chats, target)) == []


def test_topic_that_continues_another_session_in_the_target_is_kept(
    chats: SessionDB, target: SessionDBProvider
) -> None:
    target.create_session("own", "telegram", user_id="1")
    bind(target, "11", "own")
    migrate(chats, target)
    found = {row["thread_id"]: row["session_id"] for row in target.list_telegram_topic_bindings_for_chat(chat_id="1")}
    assert found == {"11": "own", "12": "t"}
    assert [str(each.what) for each in compare_lanes(chats, target)] == ["lacks 1 topic"]


def test_store_without_topics_adds_no_tables(tmp_path: Path, target: SessionDBProvider) -> None:
    with SessionDB(tmp_path / "plain.db") as store:
        store.create_session("s", "cli")
        migrate(store, target)
    assert target.get_meta("telegram_dm_topic_schema_version") is None
