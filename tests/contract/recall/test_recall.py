"""Recall: what an agent receives when it browses and reads, and for wrong arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from hermes.state.recall.tool import RECALL_GUIDANCE, SESSION_SEARCH_SCHEMA, session_search
from tests.support.clock import DAY_S, FakeClock
from tests.support.conversations import compress, contents, ids, say, start, talk
from tests.support.recall import NO_NUMBERS, error, found, local, recall

ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    10**40,
    1.5,
    float("nan"),
    "",
    "\0",
    "\ud800",
    "x" * 5_000,
    [],
    ["a"],
    {"a": 1},
]
ARGUMENTS = (
    "query",
    "role_filter",
    "limit",
    "current_session_id",
    "session_id",
    "around_message_id",
    "window",
    "sort",
    "profile",
    "timeout_s",
)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Use a home without profiles, because a missing session is searched in them."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class TestBrowse:
    def test_empty_store_is_an_empty_result_and_no_failure(self, store: SessionDBProvider) -> None:
        assert recall(store) == {
            "success": True,
            "mode": "browse",
            "results": [],
            "count": 0,
            "message": "No past sessions yet.",
        }

    def test_browse_shows_the_latest_activity_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for session_id in ("a", "b", "c"):
            start(store, session_id)
            clock.advance(1)
        say(store, "a", "again")
        assert found(recall(store)) == ["a", "c", "b"]

    def test_browse_row_describes_a_session(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s", model="m")
        store.set_session_title("s", "Title")
        clock.advance(5)
        say(store, "s", "hello 世界")
        (row,) = recall(store)["results"]
        assert row == {
            "session_id": "s",
            "when": local(clock.now - 5),
            "title": "Title",
            "source": "cli",
            "started_at": clock.now - 5,
            "last_active": clock.now,
            "message_count": 1,
            "preview": "hello 世界",
        }

    def test_browse_shows_branches(self, store: SessionDBProvider) -> None:
        start(store, "s")
        start(store, "branch", parent_session_id="s", child_kind="branch")
        assert set(found(recall(store))) == {"s", "branch"}

    def test_browse_shows_a_compressed_conversation_once(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        compress(store, clock, "s", "s2")
        assert found(recall(store)) == ["s2"]

    @pytest.mark.parametrize("source", ["subagent", "tool"])
    def test_browse_leaves_out_sessions_of_agents_and_tools(self, store: SessionDBProvider, source: str) -> None:
        start(store, "s")
        start(store, "hidden", source=source)
        assert found(recall(store)) == ["s"]

    def test_browse_leaves_out_the_whole_current_lineage(self, store: SessionDBProvider) -> None:
        start(store, "root", "other")
        start(store, "branch", "sibling", parent_session_id="root", child_kind="branch")
        assert found(recall(store, current_session_id="branch")) == ["other"]

    def test_browse_is_full_however_many_rows_are_left_out(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "a", "b", "c", "root")
        clock.advance(DAY_S)
        for number in range(45):
            start(store, f"branch{number}", parent_session_id="root", child_kind="branch")
        assert sorted(found(recall(store, current_session_id="root"))) == ["a", "b", "c"]

    def test_browse_shows_as_many_as_requested(self, store: SessionDBProvider) -> None:
        start(store, *(f"s{number}" for number in range(12)))
        assert len(found(recall(store))) == 3
        assert recall(store, limit=7)["count"] == 7


class TestRead:
    def test_read_shows_a_session_from_its_start(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s", model="m")
        store.set_session_title("s", "Title")
        (message_id,) = say(store, "s", "hello")
        assert recall(store, session_id="s") == {
            "success": True,
            "mode": "read",
            "session_id": "s",
            "session_meta": {"when": local(clock.now), "source": "cli", "model": "m", "title": "Title"},
            "message_count": 1,
            "truncated": False,
            "messages": [{"id": message_id, "role": "user", "content": "hello", "timestamp": clock.now}],
        }

    def test_read_shows_thirty_messages_whole(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = talk(store, "s", 15)
        response = recall(store, session_id="s")
        assert (ids(response["messages"]), response["truncated"], "message" in response) == (message_ids, False, False)

    def test_read_shows_both_ends_of_a_longer_one(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = talk(store, "s", 15) + say(store, "s", "one more")
        response = recall(store, session_id="s")
        assert ids(response["messages"]) == message_ids[:20] + message_ids[-10:]
        assert (response["truncated"], response["message_count"]) == (True, 31)
        assert "31 messages" in response["message"]

    def test_read_leaves_out_undone_messages(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = say(store, "s", "kept", "gone")
        store.rewind_to_message("s", message_ids[1])
        assert contents(recall(store, session_id="s")["messages"]) == ["kept"]

    def test_read_is_not_refused_for_the_current_session(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert recall(store, session_id="s", current_session_id="s")["session_id"] == "s"

    def test_read_beats_a_query(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert recall(store, session_id="s", query="anything")["mode"] == "read"

    def test_read_takes_no_prefix(self, store: SessionDBProvider) -> None:
        start(store, "session")
        assert "there is no session 'sess'" in error(recall(store, session_id="sess"))

    def test_read_finds_an_id_with_a_slash(self, store: SessionDBProvider) -> None:
        start(store, "a/b")
        assert recall(store, session_id="a/b")["session_id"] == "a/b"

    def test_read_shows_which_tools_were_called(self, store: SessionDBProvider) -> None:
        start(store, "s")
        calls = [{"id": "c1", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}]
        store.append_message("s", "assistant", None, tool_calls=calls)
        store.append_message("s", "tool", "a.txt", tool_name="terminal", tool_call_id="c1")
        asked, answered = recall(store, session_id="s")["messages"]
        assert (asked["content"], asked["tool_calls"]) == (None, calls)
        assert (answered["tool_name"], answered["tool_call_id"]) == ("terminal", "c1")

    def test_long_messages_are_cut_and_marked(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "a" * 100_000, "short", [{"type": "text", "text": "b" * 100_000}])
        long, short, structured = recall(store, session_id="s")["messages"]
        assert (long["truncated"], "truncated" in short, structured["truncated"]) == (True, False, True)
        assert max(len(long["content"]), len(structured["content"])) < 4_100

    def test_long_arguments_of_tools_are_cut_and_marked(self, store: SessionDBProvider) -> None:
        start(store, "s")
        calls = [{"id": "c", "function": {"name": "write_file", "arguments": "x" * 100_000}}] * 3
        store.append_message("s", "assistant", "ok", tool_calls=calls)
        (message,) = recall(store, session_id="s")["messages"]
        assert message["truncated"] is True
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["write_file"] * 3
        assert len(json.dumps(message)) < 5_000

    def test_other_scripts_are_not_escaped(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "記憶 🙂")
        assert "記憶 🙂" in session_search(db=store, session_id="s")

    def test_half_characters_still_make_valid_text(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "half \ud83d of it")
        text = session_search(db=store, session_id="s")
        assert text.isascii()
        assert contents(json.loads(text)["messages"]) == ["half \ud83d of it"]


class TestArguments:
    @pytest.mark.parametrize("name", ARGUMENTS)
    def test_odd_arguments_get_a_result(self, store: SessionDBProvider, name: str) -> None:
        start(store, "s")
        say(store, "s", "hello")
        for others in ({}, {"query": "hello"}, {"session_id": "s"}, {"session_id": "s", "around_message_id": 1}):
            for odd in ODD:
                response = recall(store, **{**others, name: odd})
                assert response["success"] is True or error(response), f"{others} with {odd!r}"

    @pytest.mark.parametrize("query", [None, "", "   ", 5, True, [], {"a": 1}])
    def test_no_query_means_browsing(self, store: SessionDBProvider, query: Any) -> None:
        assert recall(store, query=query)["mode"] == "browse"

    @pytest.mark.parametrize(
        ("limit", "shown"),
        [
            (0, 1),
            (-5, 1),
            (4, 4),
            (10, 10),
            (11, 10),
            (10**40, 10),
            ("6", 6),
            (2.9, 2),
            *((odd, 3) for odd in NO_NUMBERS),
        ],
    )
    def test_limit_is_from_1_to_10(self, store: SessionDBProvider, limit: Any, shown: int) -> None:
        start(store, *(f"s{number}" for number in range(12)))
        assert recall(store, limit=limit)["count"] == shown

    @pytest.mark.parametrize("name", ["session_id", "profile", "current_session_id"])
    def test_names_must_be_text(self, store: SessionDBProvider, name: str) -> None:
        assert name in error(recall(store, **{name: ["s"]}))

    def test_a_store_that_fails_is_an_error_and_not_empty(self, store: SessionDBProvider) -> None:
        store.close()
        assert [
            "closed" in error(recall(store, **asked))
            for asked in ({}, {"query": "x"}, {"session_id": "s"}, {"session_id": "s", "around_message_id": 1})
        ] == [True] * 4


class TestSchema:
    def test_schema_has_the_parameters_that_a_model_may_fill_in(self) -> None:
        parameters = SESSION_SEARCH_SCHEMA["parameters"]
        assert SESSION_SEARCH_SCHEMA["name"] == "session_search"
        assert set(parameters["properties"]) == {
            "query",
            "limit",
            "sort",
            "session_id",
            "around_message_id",
            "window",
            "role_filter",
            "profile",
        }
        assert parameters["required"] == []
        assert parameters["properties"]["sort"]["enum"] == ["newest", "oldest"]

    def test_every_parameter_is_explained(self) -> None:
        assert all(each["description"] for each in SESSION_SEARCH_SCHEMA["parameters"]["properties"].values())

    def test_guidance_names_the_tool(self) -> None:
        assert SESSION_SEARCH_SCHEMA["name"] in RECALL_GUIDANCE
