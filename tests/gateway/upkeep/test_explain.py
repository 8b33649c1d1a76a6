"""The life of one message, with several turns, replies and ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.upkeep.explain import explain_message, find_messages, turns_of
from hermes.state.lanes.types import InboxRow, TurnRow
from hermes_state import SessionDB
from tests.support.lanes import KEY, accept, claim, end_leases, reply, start_lane, turn_of


@pytest.fixture
def store(home: Path) -> Iterator[SessionDB]:
    with SessionDB(home / "state.db") as store:
        start_lane(store)
        yield store


def life_of(store: SessionDB, name: str) -> dict[str, Any]:
    (row,) = find_messages(store, name)
    return explain_message(store, row)


class TestFinding:
    def test_id_of_the_platform_comes_before_the_number(self, store: SessionDB) -> None:
        accept(store, "2")
        accept(store, "other")
        assert [row["id"] for row in find_messages(store, "2")] == [1]
        assert [row["id"] for row in find_messages(store, "in:2")] == [2]
        assert [row["id"] for row in find_messages(store, "1")] == [1]

    def test_chat_chooses_among_messages_with_the_same_id(self, store: SessionDB) -> None:
        for chat in ("c1", "c2"):
            store.inbox.accept(chat, {"text": "x"}, platform="telegram", chat_id=chat, message_id="7")
        assert len(find_messages(store, "7")) == 2
        assert [row["chat_id"] for row in find_messages(store, "7", "c2")] == ["c2"]
        assert find_messages(store, "7", "c3") == []
        assert find_messages(store, "in:1", "c2") == []

    @pytest.mark.parametrize("wanted", ["", " ", "nope", "in:", "in:x", "in:99", "99", "x" * 5000])
    def test_unknown_id_finds_nothing(self, store: SessionDB, wanted: str) -> None:
        accept(store, "a")
        assert find_messages(store, wanted) == []


class TestTurns:
    def test_lost_turn_and_its_successor_are_both_named(self, store: SessionDB) -> None:
        accept(store, "a")
        claim(store, "one/1")
        end_leases(store)
        second = claim(store, "two/2")
        store.turns.finish(second.lease, turn_of(second), intents=[reply(f"reply:{turn_of(second)}")])
        found = life_of(store, "a")
        assert [(turn["attempt"], turn["node"], turn["state"]) for turn in found["turns"]] == [
            (1, "one", "lost"),
            (2, "two", "finished"),
        ]
        assert found["turns"][0]["reason"] == "node one/1 did not finish the turn"
        (answer,) = found["replies"]
        assert (answer["turn_id"], answer["state"], answer["sent_at"]) == (turn_of(second), "pending", None)

    def test_turns_of_other_messages_are_left_out(self, store: SessionDB) -> None:
        for name in ("a", "b"):
            accept(store, name, kind="queue")
        for state in ("interrupt", "finish", "interrupt", "finish"):
            taken = claim(store)
            getattr(store.turns, state)(taken.lease, turn_of(taken), keep_lease=False)
        states = {name: [turn["state"] for turn in life_of(store, name)["turns"]] for name in ("a", "b")}
        assert states == {"a": ["interrupted", "finished"], "b": ["interrupted", "finished"]}
        turns = {name: {turn["turn_id"] for turn in life_of(store, name)["turns"]} for name in ("a", "b")}
        assert turns["a"] & turns["b"] == set()

    def test_message_that_waits_again_has_its_earlier_turn(self, store: SessionDB) -> None:
        accept(store, "a")
        taken = claim(store)
        store.turns.fail(taken.lease, turn_of(taken), "the model is away")
        found = life_of(store, "a")
        assert (found["state"], found["attempts"]) == ("accepted", 1)
        assert [(turn["state"], turn["reason"]) for turn in found["turns"]] == [("failed", "the model is away")]

    def test_dead_message_names_all_attempts(self, store: SessionDB) -> None:
        accept(store, "a")
        for _ in range(3):
            taken = claim(store)
            store.turns.fail(taken.lease, turn_of(taken), "it stops the node")
        found = life_of(store, "a")
        assert (found["state"], found["reason"]) == ("dead", "it stops the node")
        assert [turn["attempt"] for turn in found["turns"]] == [1, 2, 3]

    def test_turns_before_the_message_do_not_count(self) -> None:
        row: Any = {"turn_id": None, "starts": 5, "accepted_at": 10.0, "finished_at": None}
        history: list[Any] = [
            {"turn_id": name, "state": state, "started_at": at}
            for name, state, at in (
                ("d", "lost", 13.0),
                ("c", "finished", 12.0),
                ("b", "failed", 11.0),
                ("a", "lost", 9.0),
            )
        ]
        assert [turn["turn_id"] for turn in _turns(row, history)] == ["b", "d"]


def _turns(row: InboxRow, history: list[TurnRow]) -> list[TurnRow]:
    return turns_of(row, history)


class TestReplies:
    def test_replies_without_a_turn_are_found_by_their_keys(self, store: SessionDB) -> None:
        uid = accept(store, "a", kind="command").message["uid"]
        claimed = store.turns.acquire(KEY, "n1")
        assert claimed is not None
        store.turns.settle(claimed.lease, [claimed.messages[0]["id"]], intents=[reply(f"command:{uid}")])
        store.outbox.intend(reply(f"ack:{uid}"))
        found = life_of(store, "a")
        assert [each["key"] for each in found["replies"]] == [f"command:{uid}", f"ack:{uid}"]
        assert (found["state"], found["turns"], found["waited_s"] >= 0) == ("done", [], True)

    def test_sent_reply_has_its_receipt(self, store: SessionDB) -> None:
        accept(store, "a")
        taken = claim(store)
        store.turns.finish(taken.lease, turn_of(taken), intents=[reply("k1")])
        (sending,) = store.outbox.sending("n1")
        store.outbox.sent(sending["id"], sending["attempts"], {"message_ids": ["99"]})
        (answer,) = life_of(store, "a")["replies"]
        assert (answer["state"], answer["attempts"], answer["receipt"]) == ("sent", 1, {"message_ids": ["99"]})
        assert answer["sent_at"] == answer["finished_at"] >= answer["created_at"]


class TestTools:
    def test_tools_after_merged_messages_are_those_of_the_turn(self, store: SessionDB) -> None:
        uids = [accept(store, name).message["uid"] for name in ("a", "b")]
        taken = claim(store)
        store.turns.join(taken.lease, turn_of(taken), [taken.messages[0]["id"]])
        store.append_messages("s1", [{"role": "user", "content": "a", "uid": uids[0]}])
        store.append_messages("s1", [{"role": "user", "content": "b", "uid": uids[1]}])
        for name in ("session_search", "memory"):
            store.append_messages("s1", [{"role": "tool", "content": "found", "tool_name": name}])
        store.append_messages("s1", [{"role": "assistant", "content": "done"}, {"role": "user", "content": "next"}])
        store.append_messages("s1", [{"role": "tool", "content": "later", "tool_name": "terminal"}])
        for name in ("a", "b"):
            assert life_of(store, name)["turns"][0]["tools"] == ["session_search", "memory"]

    def test_deleted_session_has_no_tools(self, store: SessionDB) -> None:
        accept(store, "a")
        taken = claim(store)
        store.turns.finish(taken.lease, turn_of(taken))
        store.delete_session("s1")
        (turn,) = life_of(store, "a")["turns"]
        assert (turn["state"], turn["tools"]) == ("finished", [])


class TestUser:
    def test_user_is_known_while_the_message_is_kept(self, store: SessionDB) -> None:
        source = {"platform": "telegram", "chat_id": "g", "user_id": "7", "user_name": "Ada"}
        store.inbox.accept("g", {"text": "x", "source": source}, platform="telegram", chat_id="g", message_id="1")
        assert life_of(store, "1")["user"] == {"id": "7", "name": "Ada"}

    def test_user_of_a_private_chat_is_known_afterwards(self, store: SessionDB) -> None:
        start_lane(store, "p", "s2", {"chat_type": "dm", "origin": {"user_id": "7", "user_name": None}})
        start_lane(store, "g", "s3", {"chat_type": "group", "origin": {"user_id": "7", "user_name": None}})
        for key in ("p", "g"):
            store.inbox.accept(key, {"text": "x"}, platform="telegram", chat_id=key, message_id=key)
        assert life_of(store, "p")["user"] == {"id": "7", "name": None}
        assert life_of(store, "g")["user"] is None
