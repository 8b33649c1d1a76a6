"""Discovery: which past conversations a query finds, and what the agent receives about them."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import column, compress, contents, ids, say, start, talk
from tests.support.recall import found, local, recall


class TestResult:
    def test_result_has_the_session_and_the_messages_around_the_match(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "s", model="m")
        store.set_session_title("s", "Title")
        message_ids = [*talk(store, "s", 10), *say(store, "s", "where is the lantern"), *talk(store, "s", 10)]
        (result,) = recall(store, query="lantern")["results"]
        messages = result.pop("messages")
        assert ids(messages) == message_ids[15:26]
        assert [message["content"] for message in messages if "anchor" in message] == ["where is the lantern"]
        assert [ids(result.pop(name)) for name in ("bookend_start", "bookend_end")] == [
            message_ids[:3],
            message_ids[-3:],
        ]
        assert result == {
            "session_id": "s",
            "when": local(clock.now),
            "source": "cli",
            "model": "m",
            "title": "Title",
            "matched_role": "user",
            "match_message_id": message_ids[20],
            "snippet": "where is the >>>lantern<<<",
            "messages_before": 5,
            "messages_after": 5,
        }

    def test_result_of_a_later_session_names_the_first_one(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s", model="old")
        store.set_session_title("s", "First")
        compress(store, clock, "s", "s2", model="new")
        say(store, "s2", "lantern")
        (result,) = recall(store, query="lantern")["results"]
        assert (result["session_id"], result["title"], result["model"]) == ("s2", None, "new")
        assert result["when"] == local(clock.now)
        assert result["parent_session_id"] == "s"
        assert result["parent_meta"] == {
            "when": local(clock.now - 1),
            "source": "cli",
            "model": "old",
            "title": "First",
        }

    def test_result_without_a_model_says_unknown(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "lantern")
        assert column(recall(store, query="lantern")["results"], "model") == ["unknown"]

    def test_result_of_a_long_message_is_cut_around_the_match(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", f"{'before ' * 10_000} lantern {'after ' * 10_000}")
        ((message,),) = column(recall(store, query="lantern")["results"], "messages")
        assert "lantern" in message["content"]
        assert len(message["content"]) < 4_100
        assert message["truncated"] is True

    def test_result_shows_no_undone_messages(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = say(store, "s", "lantern", "gone")
        store.rewind_to_message("s", message_ids[1])
        assert [contents(each["messages"]) for each in recall(store, query="lantern")["results"]] == [["lantern"]]

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("我们讨论了记忆系统的设计", "记忆系统"),
            ("通信很重要", "通信"),
            ("東京タワーに行く", "タワー"),
            ("안녕 세계", "세계"),
        ],
    )
    def test_results_are_found_in_scripts_without_spaces(self, store: SessionDBProvider, text: str, query: str) -> None:
        start(store, "s", "other")
        say(store, "s", text)
        say(store, "other", "something else")
        (result,) = recall(store, query=query)["results"]
        assert (result["session_id"], contents(result["messages"])) == ("s", [text])
        assert f">>>{query}<<<" in result["snippet"]


class TestGroups:
    def test_one_session_with_many_matches_does_not_hide_others(self, store: SessionDBProvider) -> None:
        for number in range(9):
            start(store, f"quiet{number}")
            say(store, f"quiet{number}", f"in the garden of house {number} a neighbour once mentioned a lantern to me")
        start(store, "chatty")
        store.append_messages("chatty", [{"role": "user", "content": f"lantern {number}"} for number in range(300)])
        response = recall(store, query="lantern", limit=10)
        assert sorted(found(response)) == ["chatty", *(f"quiet{number}" for number in range(9))]
        assert found(response)[0] == "chatty"

    def test_a_lineage_is_one_result_by_its_best_message(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s", "other")
        say(store, "s", "a lantern among very many other things that were said on that day about this and that")
        compress(store, clock, "s", "s2")
        (best,) = say(store, "s2", "lantern lantern")
        start(store, "branch", parent_session_id="s", child_kind="branch")
        say(store, "branch", "again a lantern among many other things that were said on another day about the weather")
        say(store, "other", "one more lantern among many other things that were said on a third day about the sea")
        response = recall(store, query="lantern")
        assert sorted(found(response)) == ["other", "s2"]
        assert best in column(response["results"], "match_message_id")

    @pytest.mark.parametrize(("limit", "shown"), [(1, 1), (None, 3), (10, 10), (99, 10)])
    def test_there_are_as_many_results_as_requested(self, store: SessionDBProvider, limit: Any, shown: int) -> None:
        for number in range(12):
            start(store, f"s{number}")
            say(store, f"s{number}", "lantern")
        response = recall(store, query="lantern", limit=limit)
        assert (len(found(response)), response["count"]) == (shown, shown)

    @pytest.mark.parametrize(("sort", "order"), [("newest", ["c", "b", "a"]), ("oldest", ["a", "b", "c"])])
    def test_results_are_in_order_of_time_on_request(
        self, store: SessionDBProvider, clock: FakeClock, sort: str, order: list[str]
    ) -> None:
        for session_id in ("a", "b", "c"):
            start(store, session_id)
            moments = [clock.advance(1) for _ in range(60)]
            store.append_messages(
                session_id, [{"role": "user", "content": "lantern", "timestamp": moment} for moment in moments]
            )
        assert found(recall(store, query="lantern", sort=sort)) == order

    def test_results_have_whole_words_before_parts_of_words(self, store: SessionDBProvider) -> None:
        start(store, "loose", "exact")
        say(store, "loose", "lanternfish")
        store.append_messages("exact", [{"role": "user", "content": "lantern"}] * 60)
        assert found(recall(store, query="lantern")) == ["exact"]


class TestRoles:
    @pytest.fixture(autouse=True)
    def stored_messages(self, store: SessionDBProvider) -> None:
        for role in ("user", "assistant", "tool"):
            start(store, role)
            store.append_message(role, role, "lantern")

    @pytest.mark.parametrize("role_filter", [None, "", " , ", [], ()])
    def test_searched_roles_are_user_and_assistant_by_default(self, store: SessionDBProvider, role_filter: Any) -> None:
        assert sorted(found(recall(store, query="lantern", role_filter=role_filter))) == ["assistant", "user"]

    @pytest.mark.parametrize("role_filter", ["tool,user", " Tool , user,", ["tool", "user"]])
    def test_searched_roles_can_be_chosen(self, store: SessionDBProvider, role_filter: Any) -> None:
        assert sorted(found(recall(store, query="lantern", role_filter=role_filter))) == ["tool", "user"]

    @pytest.mark.parametrize("role_filter", [True, 5, {"a": 1}, [1]])
    def test_invalid_roles_are_an_error(self, store: SessionDBProvider, role_filter: Any) -> None:
        assert recall(store, query="lantern", role_filter=role_filter)["success"] is False


class TestHidden:
    @pytest.mark.parametrize("current", ["root", "s", "branch", "delegate", "reset"])
    def test_current_lineage_is_not_found_but_counted(self, store: SessionDBProvider, current: str) -> None:
        start(store, "root", "other")
        start(store, "s", parent_session_id="root", child_kind="compression")
        for kind in ("branch", "delegate", "reset"):
            start(store, kind, parent_session_id="s", child_kind=kind)
        for session_id in ("root", "s", "branch", "delegate", "reset", "other"):
            say(store, session_id, "lantern")
        response = recall(store, query="lantern", current_session_id=current)
        assert found(response) == ["other"]
        assert response["hidden"] == {"current_session": 5}

    def test_current_session_cannot_crowd_others_out(self, store: SessionDBProvider) -> None:
        start(store, "other", "current")
        say(store, "other", "long ago there was a lantern in the window of the house at the end of the road")
        store.append_messages("current", [{"role": "user", "content": "lantern"}] * 200)
        response = recall(store, query="lantern", current_session_id="current")
        assert found(response) == ["other"]
        assert response["hidden"] == {"current_session": 50}

    @pytest.mark.parametrize("source", ["subagent", "tool"])
    def test_agents_and_tools_are_not_found_but_counted(self, store: SessionDBProvider, source: str) -> None:
        start(store, "s")
        start(store, "hidden", source=source)
        say(store, "s", "lantern")
        say(store, "hidden", "lantern", "lantern", "no match")
        response = recall(store, query="lantern")
        assert found(response) == ["s"]
        assert response["hidden"] == {source: 2}

    def test_agent_of_the_current_session_is_counted_once(self, store: SessionDBProvider) -> None:
        start(store, "current")
        start(store, "agent", source="subagent", parent_session_id="current", child_kind="delegate")
        say(store, "current", "lantern")
        say(store, "agent", "lantern", "lantern")
        response = recall(store, query="lantern", current_session_id="current")
        assert response["hidden"] == {"current_session": 1, "subagent": 2}

    def test_undone_messages_are_not_found_but_counted(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = say(store, "s", "kept", "lantern", "lantern")
        store.rewind_to_message("s", message_ids[1])
        response = recall(store, query="lantern")
        assert (found(response), response["hidden"]) == ([], {"rewound": 2})

    def test_all_hidden_reasons_are_listed_without_other_matches(self, store: SessionDBProvider) -> None:
        start(store, "current")
        start(store, "agent", source="subagent")
        say(store, "current", "lantern")
        say(store, "agent", "lantern")
        response = recall(store, query="lantern", current_session_id="current")
        assert response["results"] == []
        assert response["hidden"] == {"current_session": 1, "subagent": 1}
        assert "current_session (1), subagent (1)" in response["message"]

    def test_matches_inside_words_are_not_counted_as_hidden(self, store: SessionDBProvider) -> None:
        start(store, "s")
        start(store, "agent", source="subagent")
        say(store, "s", "lantern")
        say(store, "agent", "lanternfish")
        assert recall(store, query="lantern")["hidden"] == {}

    def test_session_that_is_not_stored_yet_hides_nothing(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "lantern")
        assert found(recall(store, query="lantern", current_session_id="new")) == ["s"]


class TestResponse:
    def test_response_describes_the_search(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "lantern")
        response = recall(store, query="lantern AND")
        del response["results"]
        assert response == {
            "success": True,
            "mode": "discover",
            "query": "lantern AND",
            "count": 1,
            "sessions_searched": 1,
            "search": {
                "path": "words",
                "degraded": False,
                "complete": True,
                "repairs": ["AND at the end is ignored"],
            },
            "hidden": {},
        }

    def test_response_without_matches_is_no_failure(self, store: SessionDBProvider) -> None:
        response = recall(store, query="lantern")
        assert (response["success"], response["results"], response["count"], response["sessions_searched"]) == (
            True,
            [],
            0,
            0,
        )
        assert "No past session matches" in response["message"]

    def test_response_reports_a_search_inside_words(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "lanternfish")
        search = recall(store, query="lantern")["search"]
        assert search["path"] == "substring"
        assert "lantern" in search["repairs"][0]

    def test_response_reports_a_query_that_is_too_long(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "lantern")
        response = recall(store, query="lantern " * 100_000)
        assert found(response) == ["s"]
        assert "2000 characters" in response["search"]["repairs"][-1]

    @pytest.mark.parametrize("query", ["'", '"', "(", "NOT", "*", "%", "100%", "a/b", "\0", "\ud800", "-", "OR OR"])
    def test_odd_queries_never_fail(self, store: SessionDBProvider, query: str) -> None:
        start(store, "s")
        say(store, "s", "lantern")
        assert recall(store, query=query)["success"] is True
