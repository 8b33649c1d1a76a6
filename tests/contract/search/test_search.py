"""Search: the fields of a hit and of the results, and invalid arguments."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import Row, ids, say, start
from tests.support.searches import finds
from tests.support.stores import Opener

FIELDS = {
    "id",
    "session_id",
    "role",
    "snippet",
    "timestamp",
    "tool_name",
    "source",
    "model",
    "session_started",
    "title",
    "context",
}


class TestHit:
    def test_hit_has_exactly_these_fields(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        (hit,) = store.search_messages("docker")
        assert set(hit) == FIELDS

    def test_hit_has_session_time_and_role(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s", source="telegram", model="m-1")
        store.set_session_title("s", "Ships")
        clock.advance(60)
        message_id = store.append_message("s", "tool", "docker is up", tool_name="terminal")
        (found,) = store.search_messages("docker")
        hit: Row = {**found}
        del hit["context"]
        assert hit == {
            "id": message_id,
            "session_id": "s",
            "role": "tool",
            "snippet": ">>>docker<<< is up\nterminal",
            "timestamp": NOW + 60,
            "tool_name": "terminal",
            "source": "telegram",
            "model": "m-1",
            "session_started": NOW,
            "title": "Ships",
        }

    def test_unknown_fields_of_a_hit_are_none(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        (hit,) = store.search_messages("docker")
        assert (hit["tool_name"], hit["model"], hit["title"]) == (None, None, None)

    def test_hit_is_marked_in_its_snippet(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "filler " * 100 + "the docker timeout " + "filler " * 100)
        (hit,) = store.search_messages("docker timeout")
        assert ">>>docker<<< >>>timeout<<<" in hit["snippet"]
        assert hit["snippet"].startswith("...")
        assert hit["snippet"].endswith("...")

    def test_a_caller_may_change_a_hit(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker one", "docker two")
        first, second = store.search_messages("docker", sort="oldest")
        first["context"][0]["content"] = "changed"
        assert second["context"][0]["content"] == "docker one"


class TestResult:
    def test_search_through_the_index_is_neither_degraded_nor_repaired(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        results = store.search_messages("docker")
        assert isinstance(results, list)
        assert (results.path, results.degraded, results.complete) == ("words", False, True)
        assert (results.repairs, results.hidden) == ((), {})

    def test_search_reports_when_it_looked_inside_words(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "kubernetes is up")
        results = store.search_messages("bernete")
        assert (len(results), results.path) == (1, "substring")
        assert "bernete" in results.repairs[0]

    def test_search_for_parts_needs_no_repair(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "kubernetes is up")
        results = store.search_messages("*bernete*")
        assert (len(results), results.path, results.repairs) == (1, "substring", ())

    def test_search_does_not_look_inside_words_when_a_message_has_the_word(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "dockerfile", "docker")
        assert finds(store, "docker") == found[1:]

    def test_search_looks_inside_words_when_no_message_of_the_scope_has_the_word(
        self, store: SessionDBProvider
    ) -> None:
        start(store, "a", "b")
        say(store, "a", "docker")
        (inside,) = say(store, "b", "dockerfile")
        assert finds(store, "docker", session_ids=["b"]) == [inside]

    def test_excluded_words_are_never_searched_inside_words(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "dockerfile", "other")
        assert sorted(finds(store, "NOT docker")) == found

    def test_search_result_reports_repairs(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        assert len(store.search_messages('docker "up AND').repairs) == 2

    def test_search_result_counts_undone_messages_as_hidden(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker one", "docker two", "docker three")
        store.rewind_to_message("s", found[1])
        results = store.search_messages("docker")
        assert (ids(results), results.hidden) == (found[:1], {"rewound": 2})

    def test_nothing_found_is_an_empty_list_and_complete(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        results = store.search_messages("podman")
        assert (list(results), results.complete, results.degraded) == ([], True, False)

    def test_search_result_of_an_empty_store_is_empty(self, store: SessionDBProvider) -> None:
        assert store.search_messages("docker") == []
        assert store.search_messages("NOT docker") == []

    @pytest.mark.parametrize("query", ["", " ", "\t\n", "\u3000", "\ufeff", "\u200d", None])
    def test_search_result_of_a_blank_query_is_empty(self, store: SessionDBProvider, query: Any) -> None:
        say(store, start(store, "s"), "docker is up", "")
        assert store.search_messages(query) == []

    def test_search_result_reports_that_time_ran_out(self, store: SessionDBProvider) -> None:
        start(store, "s")
        for _ in range(4):
            store.append_messages("s", [{"role": "user", "content": "docker compose timeout"} for _ in range(1_000)])
        results = store.search_messages("*ocke* -*zzz*", limit=10_000, budget_s=0.0)
        assert not results.complete


class TestArguments:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"query": 5},
            {"query": b"docker"},
            {"query": ["docker"]},
            {"source_filter": 5},
            {"source_filter": [5]},
            {"source_filter": b"cli"},
            {"source_filter": {"cli": 1}},
            {"source_filter": [None]},
            {"exclude_sources": 5},
            {"exclude_sources": ["cli", 1]},
            {"role_filter": 5},
            {"role_filter": [b"user"]},
            {"session_ids": 5},
            {"session_ids": [5]},
            {"exclude_session_ids": 5},
            {"limit": "5"},
            {"limit": 1.5},
            {"limit": -2},
            {"limit": True},
            {"limit": 2**63},
            {"offset": "5"},
            {"offset": 1.5},
            {"offset": None},
            {"sort": 5},
            {"include_inactive": "yes"},
            {"include_inactive": None},
            {"owner": 5},
            {"owner": ["telegram:1"]},
            {"since": "yesterday"},
            {"since": float("nan")},
            {"since": float("inf")},
            {"since": True},
            {"until": "tomorrow"},
            {"until": []},
        ],
        ids=str,
    )
    def test_arguments_of_the_wrong_kind_are_refused(self, store: SessionDBProvider, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValue):
            store.search_messages(**{"query": "docker", **wrong})

    def test_arguments_may_be_given_in_the_documented_order(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker one", "docker two")
        assert ids(store.search_messages("docker", ["cli"], ["cron"], ["user"], 1, 1, "newest", False)) == found[:1]

    def test_a_single_name_is_accepted_as_a_list(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker")
        assert finds(store, "docker", source_filter="cli", role_filter="user", session_ids="s") == found

    def test_list_arguments_may_be_any_iterable(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker")
        assert finds(store, "docker", source_filter=iter(["cli"]), role_filter={"user"}, session_ids=("s",)) == found


class TestReadOnly:
    def test_read_only_store_is_searched_like_any_other(self, open_store: Opener) -> None:
        writer = open_store()
        found = say(writer, start(writer, "s"), "docker one", "记忆断裂")
        reader = open_store(read_only=True)
        assert finds(reader, "docker") == found[:1]
        assert finds(reader, "忆断") == found[1:]

    def test_read_only_store_is_searched_after_its_writer_closed(self, open_store: Opener) -> None:
        writer = open_store()
        found = say(writer, start(writer, "s"), "docker one", "记忆断裂")
        writer.close()
        reader = open_store(read_only=True)
        assert finds(reader, "docker") == found[:1]
        assert finds(reader, "*cke*") == found[:1]
        assert finds(reader, "NOT docker", sort="newest", since=0) == found[1:]


def test_a_huge_budget_is_accepted(store: SessionDBProvider) -> None:
    start(store, "s")
    say(store, "s", "lantern")
    assert len(store.search_messages("lantern", budget_s=1e308)) == 1
