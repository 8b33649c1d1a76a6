"""Recall for one owner never returns anything of another owner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import contents, say, start
from tests.support.recall import Summarizer, error, found, recall

ALICE, BOB = "telegram:1", "telegram:2"


@pytest.fixture
def bobs_message(store: SessionDBProvider) -> int:
    """Store a message of Bob, in a branch of a session of Alice; each has sessions of agents too."""
    start(store, "alices", source="telegram", user_id="1")
    say(store, "alices", "alice says lantern")
    start(store, "bobs", source="telegram", user_id="2", parent_session_id="alices", child_kind="branch")
    start(store, "bobs-agent", source="subagent", owner=BOB)
    say(store, "bobs-agent", "bob asks for a lantern")
    return say(store, "bobs", "bob says lantern")[0]


def test_browse_shows_own_sessions_only(store: SessionDBProvider, bobs_message: int) -> None:
    assert found(recall(store, owner=ALICE)) == ["alices"]
    assert found(recall(store, owner=BOB)) == ["bobs"]


def test_discovery_finds_own_sessions_only(store: SessionDBProvider, bobs_message: int) -> None:
    assert found(recall(store, query="lantern", owner=ALICE)) == ["alices"]
    assert found(recall(store, query="lantern", owner=BOB)) == ["bobs"]


def test_sentence_finds_own_sessions_only(store: SessionDBProvider, bobs_message: int) -> None:
    assert found(recall(store, query="who says that the lantern shines", owner=ALICE)) == ["alices"]
    assert found(recall(store, query="who says that the lantern shines", owner=BOB)) == ["bobs"]


def test_discovery_counts_own_hidden_messages_only(store: SessionDBProvider, bobs_message: int) -> None:
    assert recall(store, query="lantern", owner=ALICE, current_session_id="bobs")["hidden"] == {"current_session": 1}
    assert recall(store, query="lantern", owner=BOB)["hidden"] == {"subagent": 1}


def test_discovery_counts_own_undone_messages_only(store: SessionDBProvider, bobs_message: int) -> None:
    store.rewind_to_message("bobs", bobs_message)
    assert recall(store, query="lantern", owner=ALICE)["hidden"] == {}
    assert recall(store, query="lantern", owner=BOB)["hidden"]["rewound"] == 1


def test_first_session_of_a_lineage_is_the_first_own_one(store: SessionDBProvider, bobs_message: int) -> None:
    (result,) = recall(store, query="lantern", owner=BOB)["results"]
    assert result["session_id"] == "bobs"
    assert "alice" not in json.dumps(result)


def test_summarizer_is_given_own_messages_only(store: SessionDBProvider) -> None:
    start(store, "alices", source="telegram", user_id="1")
    say(store, "alices", "alice says lantern")
    start(store, "bobs", owner=BOB, parent_session_id="alices", child_kind="compression")
    say(store, "bobs", "bob says lantern")
    summarizer = Summarizer()
    recall(store, query="lantern", owner=BOB, summarize=summarizer)
    assert summarizer.transcript == "[USER] bob says lantern"


@pytest.mark.parametrize("current", [None, "alices"])
def test_read_opens_own_sessions_only(store: SessionDBProvider, bobs_message: int, current: str | None) -> None:
    foreign = recall(store, session_id="bobs", owner=ALICE, current_session_id=current)
    missing = recall(store, session_id="gone", owner=ALICE, current_session_id=current)
    assert error(foreign).replace("bobs", "gone") == error(missing)
    assert contents(recall(store, session_id="bobs", owner=BOB)["messages"]) == ["bob says lantern"]


@pytest.mark.parametrize("current", [None, "alices"])
def test_scroll_works_in_own_sessions_only(store: SessionDBProvider, bobs_message: int, current: str | None) -> None:
    asked = {"around_message_id": bobs_message, "owner": ALICE, "current_session_id": current}
    foreign = recall(store, session_id="bobs", **asked)
    assert error(foreign).replace("bobs", "gone") == error(recall(store, session_id="gone", **asked))


def test_recall_does_not_follow_a_lineage_to_another_owner(store: SessionDBProvider, bobs_message: int) -> None:
    foreign = recall(store, session_id="alices", around_message_id=bobs_message, owner=ALICE)
    missing = recall(store, session_id="alices", around_message_id=bobs_message + 1, owner=ALICE)
    assert error(foreign).replace(str(bobs_message), str(bobs_message + 1)) == error(missing)


def test_lineage_ends_at_a_session_of_another_owner(store: SessionDBProvider, bobs_message: int) -> None:
    start(store, "alices-too", owner=ALICE, parent_session_id="bobs", child_kind="branch")
    (message_id,) = say(store, "alices-too", "alice says lantern again")
    assert sorted(found(recall(store, query="lantern", owner=ALICE))) == ["alices", "alices-too"]
    assert "not in" in error(recall(store, session_id="alices", around_message_id=message_id, owner=ALICE))


def test_owner_without_sessions_sees_nothing(store: SessionDBProvider, bobs_message: int) -> None:
    start(store, "terminal")
    say(store, "terminal", "lantern")
    assert found(recall(store, owner="")) == found(recall(store, owner="", query="lantern")) == []
    assert "there is no session" in error(recall(store, owner="", session_id="terminal"))


@pytest.mark.parametrize("owner", [True, 0, [], [ALICE], {}])
def test_owner_of_the_wrong_type_is_an_error(store: SessionDBProvider, bobs_message: int, owner: Any) -> None:
    assert "owner" in error(recall(store, owner=owner))


@pytest.mark.parametrize("session_id", ["default/alices", "default/gone", "work/x"])
def test_owner_cannot_search_other_profiles(store: SessionDBProvider, bobs_message: int, session_id: str) -> None:
    assert error(recall(store, session_id=session_id, owner=ALICE)) == error(recall(store, profile="x", owner=BOB))
