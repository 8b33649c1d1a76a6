"""Searching messages: what a hit and an answer say, and what is no query."""

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
    def test_has_exactly_these_fields(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        (hit,) = store.search_messages("docker")
        assert set(hit) == FIELDS

    def test_says_where_when_and_by_whom(self, store: SessionDBProvider, clock: FakeClock) -> None:
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

    def test_what_is_not_known_is_none(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        (hit,) = store.search_messages("docker")
        assert (hit["tool_name"], hit["model"], hit["title"]) == (None, None, None)

    def test_is_marked_in_its_snippet(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "filler " * 100 + "the docker timeout " + "filler " * 100)
        (hit,) = store.search_messages("docker timeout")
        assert ">>>docker<<< >>>timeout<<<" in hit["snippet"]
        assert hit["snippet"].startswith("...")
        assert hit["snippet"].endswith("...")

    def test_a_caller_may_change_it(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker one", "docker two")
        first, second = store.search_messages("docker", sort="oldest")
        first["context"][0]["content"] = "changed"
        assert second["context"][0]["content"] == "docker one"


class TestAnswer:
    def test_through_the_index_is_neither_degraded_nor_repaired(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        results = store.search_messages("docker")
        assert isinstance(results, list)
        assert (results.path, results.degraded, results.complete) == ("words", False, True)
        assert (results.repairs, results.hidden) == ((), {})

    def test_says_when_it_looked_inside_of_words(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "kubernetes is up")
        results = store.search_messages("bernete")
        assert (len(results), results.path) == (1, "substring")
        assert "bernete" in results.repairs[0]

    def test_that_was_asked_for_parts_is_of_parts_without_repair(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "kubernetes is up")
        results = store.search_messages("*bernete*")
        assert (len(results), results.path, results.repairs) == (1, "substring", ())

    def test_does_not_look_inside_of_words_when_a_message_has_the_word(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "dockerfile", "docker")
        assert finds(store, "docker") == found[1:]

    def test_looks_inside_of_words_when_no_message_of_the_scope_has_the_word(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        say(store, "a", "docker")
        (inside,) = say(store, "b", "dockerfile")
        assert finds(store, "docker", session_ids=["b"]) == [inside]

    def test_what_must_be_lacking_is_never_looked_for_inside_of_words(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "dockerfile", "other")
        assert sorted(finds(store, "NOT docker")) == found

    def test_says_what_was_repaired(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        assert len(store.search_messages('docker "up AND').repairs) == 2

    def test_counts_rewound_messages_as_hidden(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker one", "docker two", "docker three")
        store.rewind_to_message("s", found[1])
        results = store.search_messages("docker")
        assert (ids(results), results.hidden) == (found[:1], {"rewound": 2})

    def test_nothing_found_is_an_empty_list_and_complete(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker is up")
        results = store.search_messages("podman")
        assert (list(results), results.complete, results.degraded) == ([], True, False)

    def test_of_an_empty_store_is_empty(self, store: SessionDBProvider) -> None:
        assert store.search_messages("docker") == []
        assert store.search_messages("NOT docker") == []

    @pytest.mark.parametrize("query", ["", " ", "\t\n", "\u3000", "\ufeff", "\u200d", None])
    def test_of_a_blank_query_is_empty(self, store: SessionDBProvider, query: Any) -> None:
        say(store, start(store, "s"), "docker is up", "")
        assert store.search_messages(query) == []

    def test_that_ran_out_of_time_says_so(self, store: SessionDBProvider) -> None:
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
    def test_of_the_wrong_kind_are_refused(self, store: SessionDBProvider, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValue):
            store.search_messages(**{"query": "docker", **wrong})

    def test_may_be_given_in_the_documented_order(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker one", "docker two")
        assert ids(store.search_messages("docker", ["cli"], ["cron"], ["user"], 1, 1, "newest", False)) == found[:1]

    def test_a_single_name_is_a_list_of_one(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker")
        assert finds(store, "docker", source_filter="cli", role_filter="user", session_ids="s") == found

    def test_lists_may_be_any_iterable(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker")
        assert finds(store, "docker", source_filter=iter(["cli"]), role_filter={"user"}, session_ids=("s",)) == found


class TestReadOnly:
    def test_store_is_searched_as_any_other(self, open_store: Opener) -> None:
        writer = open_store()
        found = say(writer, start(writer, "s"), "docker one", "记忆断裂")
        reader = open_store(read_only=True)
        assert finds(reader, "docker") == found[:1]
        assert finds(reader, "忆断") == found[1:]

    def test_store_that_is_closed_elsewhere_is_searched_too(self, open_store: Opener) -> None:
        writer = open_store()
        found = say(writer, start(writer, "s"), "docker one", "记忆断裂")
        writer.close()
        reader = open_store(read_only=True)
        assert finds(reader, "docker") == found[:1]
        assert finds(reader, "*cke*") == found[:1]
        assert finds(reader, "NOT docker", sort="newest", since=0) == found[1:]


def test_a_budget_may_be_longer_than_any_clock_counts(store: SessionDBProvider) -> None:
    start(store, "s")
    say(store, "s", "lantern")
    assert len(store.search_messages("lantern", budget_s=1e308)) == 1
