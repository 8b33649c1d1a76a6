"""Recall for one owner: whatever is asked, nothing of anybody else is in the answer."""

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
    """A message of Bob, in a branch of a session of Alice; each has agents that worked for them too."""
    start(store, "alices", source="telegram", user_id="1")
    say(store, "alices", "alice says lantern")
    start(store, "bobs", source="telegram", user_id="2", parent_session_id="alices", child_kind="branch")
    start(store, "bobs-agent", source="subagent", owner=BOB)
    say(store, "bobs-agent", "bob asks for a lantern")
    return say(store, "bobs", "bob says lantern")[0]


def test_browses_own_sessions_only(store: SessionDBProvider, bobs_message: int) -> None:
    assert found(recall(store, owner=ALICE)) == ["alices"]
    assert found(recall(store, owner=BOB)) == ["bobs"]


def test_discovers_own_sessions_only(store: SessionDBProvider, bobs_message: int) -> None:
    assert found(recall(store, query="lantern", owner=ALICE)) == ["alices"]
    assert found(recall(store, query="lantern", owner=BOB)) == ["bobs"]


def test_counts_own_hidden_messages_only(store: SessionDBProvider, bobs_message: int) -> None:
    assert recall(store, query="lantern", owner=ALICE, current_session_id="bobs")["hidden"] == {"current_session": 1}
    assert recall(store, query="lantern", owner=BOB)["hidden"] == {"subagent": 1}


def test_counts_own_rewound_messages_only(store: SessionDBProvider, bobs_message: int) -> None:
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
def test_reads_own_sessions_only(store: SessionDBProvider, bobs_message: int, current: str | None) -> None:
    foreign = recall(store, session_id="bobs", owner=ALICE, current_session_id=current)
    missing = recall(store, session_id="gone", owner=ALICE, current_session_id=current)
    assert error(foreign).replace("bobs", "gone") == error(missing)
    assert contents(recall(store, session_id="bobs", owner=BOB)["messages"]) == ["bob says lantern"]


@pytest.mark.parametrize("current", [None, "alices"])
def test_scrolls_in_own_sessions_only(store: SessionDBProvider, bobs_message: int, current: str | None) -> None:
    asked = {"around_message_id": bobs_message, "owner": ALICE, "current_session_id": current}
    foreign = recall(store, session_id="bobs", **asked)
    assert error(foreign).replace("bobs", "gone") == error(recall(store, session_id="gone", **asked))


def test_does_not_follow_a_lineage_to_somebody_else(store: SessionDBProvider, bobs_message: int) -> None:
    foreign = recall(store, session_id="alices", around_message_id=bobs_message, owner=ALICE)
    missing = recall(store, session_id="alices", around_message_id=bobs_message + 1, owner=ALICE)
    assert error(foreign).replace(str(bobs_message), str(bobs_message + 1)) == error(missing)


def test_lineage_ends_where_somebody_elses_session_begins(store: SessionDBProvider, bobs_message: int) -> None:
    start(store, "alices-too", owner=ALICE, parent_session_id="bobs", child_kind="branch")
    (message_id,) = say(store, "alices-too", "alice says lantern again")
    assert sorted(found(recall(store, query="lantern", owner=ALICE))) == ["alices", "alices-too"]
    assert "not in" in error(recall(store, session_id="alices", around_message_id=message_id, owner=ALICE))


def test_owner_of_nothing_sees_nothing(store: SessionDBProvider, bobs_message: int) -> None:
    start(store, "terminal")
    say(store, "terminal", "lantern")
    assert found(recall(store, owner="")) == found(recall(store, owner="", query="lantern")) == []
    assert "there is no session" in error(recall(store, owner="", session_id="terminal"))


@pytest.mark.parametrize("owner", [True, 0, [], [ALICE], {}])
def test_owner_that_is_no_text_is_an_error(store: SessionDBProvider, bobs_message: int, owner: Any) -> None:
    assert "owner" in error(recall(store, owner=owner))


@pytest.mark.parametrize("session_id", ["default/alices", "default/gone", "work/x"])
def test_cannot_look_into_profiles(store: SessionDBProvider, bobs_message: int, session_id: str) -> None:
    assert error(recall(store, session_id=session_id, owner=ALICE)) == error(recall(store, profile="x", owner=BOB))
