"""Transcripts: append, replace, load, undo; with and without a database, and as JSONL files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.gateway import GatewayConfig, Platform, SessionSource, SessionStore
from tests.gateway.store.conftest import MakeStore
from tests.gateway.store.database import Database

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7")
AnyStore = Callable[..., SessionStore]


def talk(store: SessionStore, turns: int = 2) -> str:
    session_id = store.get_or_create_session(ALICE).session_id
    for number in range(1, turns + 1):
        store.append_to_transcript(session_id, {"role": "user", "content": f"question {number}"})
        store.append_to_transcript(session_id, {"role": "assistant", "content": f"answer {number}"})
    return session_id


def texts(store: SessionStore, session_id: str) -> list[Any]:
    return [message["content"] for message in store.load_transcript(session_id)]


def test_messages_are_loaded_in_order(any_store: AnyStore) -> None:
    store = any_store()
    session_id = talk(store)
    loaded = [(message["role"], message["content"]) for message in store.load_transcript(session_id)]
    assert loaded == [
        ("user", "question 1"),
        ("assistant", "answer 1"),
        ("user", "question 2"),
        ("assistant", "answer 2"),
    ]


def test_unknown_session_has_no_messages(any_store: AnyStore) -> None:
    assert any_store().load_transcript("nothing") == []


def test_all_documented_fields_of_a_message_are_stored(make_store: MakeStore) -> None:
    store = make_store()
    session_id = store.get_or_create_session(ALICE).session_id
    call = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    store.append_to_transcript(
        session_id,
        {"role": "assistant", "content": "x", "tool_calls": call, "reasoning": "because", "message_id": "m1"},
    )
    store.append_to_transcript(
        session_id, {"role": "tool", "content": "y", "tool_name": "f", "tool_call_id": "c1", "reasoning": "not stored"}
    )
    store.append_to_transcript(session_id, {"content": "z", "platform_message_id": "m2", "observed": True})
    assert store._db is not None
    rows: list[Any] = list(store._db.get_messages(session_id))
    assert [row["role"] for row in rows] == ["assistant", "tool", "unknown"]
    assert (rows[0]["tool_calls"], rows[0]["reasoning"], rows[0]["platform_message_id"]) == (call, "because", "m1")
    assert (rows[1]["tool_name"], rows[1]["tool_call_id"], rows[1]["reasoning"]) == ("f", "c1", None)
    assert (rows[2]["platform_message_id"], bool(rows[2]["observed"])) == ("m2", True)


def test_message_that_the_agent_has_stored_is_skipped(any_store: AnyStore) -> None:
    store = any_store()
    session_id = store.get_or_create_session(ALICE).session_id
    store.append_to_transcript(session_id, {"role": "user", "content": "hi"}, skip_db=True)
    assert store.load_transcript(session_id) == []


def test_message_for_a_missing_session_is_kept_in_its_file(make_store: MakeStore, home: Path) -> None:
    make_store().append_to_transcript("gone", {"role": "user", "content": "hi"})
    (line,) = (home / "sessions" / "gone.jsonl").read_text().splitlines()
    assert json.loads(line)["content"] == "hi"


def test_transcript_can_be_replaced(any_store: AnyStore) -> None:
    store = any_store()
    session_id = talk(store)
    new = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert store.rewrite_transcript(session_id, new) is True
    assert texts(store, session_id) == ["a", "b"]


def test_replacement_that_fails_leaves_the_old_messages(any_store: AnyStore) -> None:
    store = any_store()
    session_id = talk(store, 1)
    assert store.rewrite_transcript(session_id, [{"role": "user", "content": object()}]) is False
    assert texts(store, session_id) == ["question 1", "answer 1"]


def test_replacement_in_a_missing_session_returns_false(make_store: MakeStore) -> None:
    assert make_store().rewrite_transcript("gone", [{"role": "user", "content": "x"}]) is False


@pytest.mark.parametrize(
    ("n", "turns", "rewound", "target", "left"),
    [
        (1, 1, 2, "question 3", 4),
        (2, 2, 4, "question 2", 2),
        (0, 1, 2, "question 3", 4),
        (-4, 1, 2, "question 3", 4),
        (99, 3, 6, "question 1", 0),
    ],
)
def test_turns_are_undone(any_store: AnyStore, n: int, turns: int, rewound: int, target: str, left: int) -> None:
    store = any_store()
    session_id = talk(store, 3)
    assert store.rewind_session(session_id, n) == {
        "rewound_count": rewound,
        "turns_undone": turns,
        "target_text": target,
    }
    assert len(store.load_transcript(session_id)) == left


def test_more_than_ten_turns_are_undone(any_store: AnyStore) -> None:
    store = any_store()
    session_id = talk(store, 12)
    undone = store.rewind_session(session_id, 11)
    assert undone is not None
    assert (undone["turns_undone"], undone["target_text"]) == (11, "question 2")


def test_any_number_of_turns_can_be_undone(make_store: MakeStore) -> None:
    store = make_store()
    undone = store.rewind_session(talk(store, 3), 10**30)
    assert undone is not None
    assert undone["turns_undone"] == 3


def test_message_that_cannot_be_stored_at_all_is_refused(make_store: MakeStore) -> None:
    store = make_store()
    content: Any = "x"
    for _ in range(200_000):
        content = [content]
    with pytest.raises(InvalidValue):
        store.append_to_transcript(talk(store, 1), {"role": "user", "content": content})


def test_nothing_to_undo_returns_none(any_store: AnyStore) -> None:
    store = any_store()
    session_id = store.get_or_create_session(ALICE).session_id
    assert store.rewind_session(session_id) is None
    assert store.rewind_session("gone") is None


def test_undone_messages_stay_in_the_database(make_store: MakeStore) -> None:
    store = make_store()
    session_id = talk(store, 1)
    store.rewind_session(session_id)
    assert store._db is not None
    assert len(store._db.get_messages(session_id, include_inactive=True)) == 2


def test_text_parts_of_an_undone_message_are_joined(any_store: AnyStore) -> None:
    store = any_store()
    session_id = store.get_or_create_session(ALICE).session_id
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "b"},
    ]
    store.append_to_transcript(session_id, {"role": "user", "content": parts})
    undone = store.rewind_session(session_id)
    assert undone is not None
    assert undone["target_text"] == "a\nb"


def test_configured_files_get_every_message_after_its_commit(make_store: MakeStore, home: Path) -> None:
    store = make_store(GatewayConfig(jsonl_transcripts=True))
    session_id = talk(store, 1)
    store.append_to_transcript(session_id, {"role": "user", "content": "by the agent"}, skip_db=True)
    lines = (home / "sessions" / f"{session_id}.jsonl").read_text().splitlines()
    assert [json.loads(line)["content"] for line in lines] == ["question 1", "answer 1", "by the agent"]
    store.rewrite_transcript(session_id, [{"role": "user", "content": "new"}])
    lines = (home / "sessions" / f"{session_id}.jsonl").read_text().splitlines()
    assert [json.loads(line)["content"] for line in lines] == ["new"]


def test_without_the_setting_there_are_no_files(make_store: MakeStore, home: Path) -> None:
    talk(make_store())
    assert not list((home / "sessions").glob("*.jsonl"))


def test_file_of_a_strange_session_stays_in_the_directory(
    make_store: MakeStore, home: Path, database: Database
) -> None:
    database.is_down = True
    store = make_store()
    store.append_to_transcript("../../etc/x", {"role": "user", "content": "hi"})
    assert store.load_transcript("../../etc/x") == [{"role": "user", "content": "hi"}]
    assert {path.parent for path in home.rglob("*.jsonl")} == {home / "sessions"}


def test_sessions_with_odd_ids_have_files_of_their_own(make_store: MakeStore, database: Database) -> None:
    database.is_down = True
    store = make_store()
    odd = ["degraded", "degraded-rejected", "x" * 300, "x" * 301, "\ud800", "\ud801", "?", "a?b"]
    for session_id in odd:
        store.append_to_transcript(session_id, {"role": "user", "content": ascii(session_id)})
    for session_id in odd:
        assert store.load_transcript(session_id) == [{"role": "user", "content": ascii(session_id)}]
