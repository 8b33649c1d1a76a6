"""Searching messages: what a hit says, what of a message is searched, and what is no query."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import contents, ids, say, start
from tests.support.stores import Opener

PATIENCE_S = 10.0
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


def call(arguments: Any, name: str = "run_it", call_id: str = "call_7f3") -> list[dict[str, Any]]:
    """A tool call as models make it."""
    return [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]


def finds(store: SessionDBProvider, query: str, **filters: Any) -> list[int]:
    """The ids of the messages that a query finds, in order."""
    results = store.search_messages(query, budget_s=PATIENCE_S, **filters)
    assert (results.complete, results.degraded) == (True, False)
    return ids(results)


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
        (hit,) = store.search_messages("docker")
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


class TestContext:
    def test_is_the_neighbours_and_the_hit_itself(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "first", "before")
        say(store, "s", "docker", role="assistant")
        say(store, "s", "after", "last")
        (hit,) = store.search_messages("docker")
        assert hit["context"] == [
            {"role": "user", "content": "before"},
            {"role": "assistant", "content": "docker"},
            {"role": "user", "content": "after"},
        ]

    def test_at_the_ends_of_a_session_is_shorter(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "docker first", "middle", "docker last")
        last, first = store.search_messages("docker", sort="newest")
        assert contents(first["context"]) == ["docker first", "middle"]
        assert contents(last["context"]) == ["middle", "docker last"]

    def test_of_a_single_message_is_that_message(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker")
        (hit,) = store.search_messages("docker")
        assert contents(hit["context"]) == ["docker"]

    def test_never_comes_from_another_session(self, store: SessionDBProvider) -> None:
        start(store, "a", "b", "c")
        for turn in range(5):
            for session_id in ("a", "b", "c"):
                say(store, session_id, f"{session_id} {turn} docker" if turn == 2 else f"{session_id} {turn}")
        hits = store.search_messages("docker")
        assert {hit["session_id"]: contents(hit["context"]) for hit in hits} == {
            each: [f"{each} 1", f"{each} 2 docker", f"{each} 3"] for each in ("a", "b", "c")
        }

    def test_follows_the_order_of_the_conversation_and_not_the_clock(self, store: SessionDBProvider) -> None:
        start(store, "s")
        for text, moment in (("before", 300.0), ("docker", 200.0), ("after", 100.0)):
            store.append_message("s", "user", text, timestamp=moment)
        (hit,) = store.search_messages("docker")
        assert contents(hit["context"]) == ["before", "docker", "after"]

    def test_is_of_every_role_whatever_role_is_searched(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "before", role="system")
        say(store, "s", "docker")
        say(store, "s", "after", role="tool")
        (hit,) = store.search_messages("docker", role_filter=["user"])
        assert [each["role"] for each in hit["context"]] == ["system", "user", "tool"]

    def test_is_cut_at_200_characters(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "x" * 1_000, "docker" + "é" * 1_000, "世" * 1_000)
        (hit,) = store.search_messages("docker*")
        assert contents(hit["context"]) == ["x" * 200, "docker" + "é" * 194, "世" * 200]

    @pytest.mark.parametrize(
        ("content", "shown"),
        [
            ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one two"),
            ([{"type": "text", "text": "x" * 300}], "x" * 200),
            ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,xx"}}], "[multimodal content]"),
            ([], "[multimodal content]"),
            ({"text": "one"}, "one"),
            (None, ""),
            ("", ""),
            ("\n\ttext", "\n\ttext"),
            ("nul\0nul", "nul\0nul"),
            ("\x01json:[1]", "\x01json:[1]"),
        ],
    )
    def test_shows_any_content_as_text(self, store: SessionDBProvider, content: Any, shown: str) -> None:
        say(store, start(store, "s"), "docker", content)
        (hit,) = store.search_messages("docker")
        assert contents(hit["context"]) == ["docker", shown]

    def test_has_no_rewound_messages(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker", "gone")
        store.rewind_to_message("s", found[1])
        say(store, "s", "instead")
        (hit,) = store.search_messages("docker")
        assert contents(hit["context"]) == ["docker", "instead"]

    def test_has_rewound_messages_for_those_who_want_to_see_them(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker", "gone")
        store.rewind_to_message("s", found[1])
        (hit,) = store.search_messages("docker", include_inactive=True)
        assert contents(hit["context"]) == ["docker", "gone"]

    def test_of_many_hits_is_right_for_each(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_messages("s", [{"role": "user", "content": f"docker {number}"} for number in range(900)])
        hits = store.search_messages("docker", sort="oldest", limit=900, budget_s=PATIENCE_S)
        assert [contents(hit["context"]) for hit in hits[1:-1]] == [
            [f"docker {number - 1}", f"docker {number}", f"docker {number + 1}"] for number in range(1, 899)
        ]


class TestWhatIsSearched:
    @pytest.mark.parametrize("query", ["first", "second", "first second", '"first part"', "cat.png"])
    def test_every_text_of_structured_content(self, store: SessionDBProvider, query: str) -> None:
        parts = [
            {"type": "text", "text": "the first part"},
            {"type": "image_url", "image_url": {"url": "https://x.com/cat.png"}},
            {"type": "text", "text": "the second part"},
        ]
        found = say(store, start(store, "s"), parts, "other")
        assert finds(store, query) == found[:1]

    def test_a_picture_is_not_text(self, store: SessionDBProvider) -> None:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo"}}
        say(store, start(store, "s"), [{"type": "text", "text": "look"}, picture])
        assert finds(store, "*iVBORw0KGgo*") == []

    def test_text_in_another_script_inside_of_structured_content(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), [{"type": "text", "text": "记忆断裂 привет café 👍"}])
        for query in ("忆断", "привет", "cafe", "👍", "记"):
            assert finds(store, query) == found

    def test_text_with_characters_that_no_database_holds(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "before\0after", "half \ud83d done", "\x01json:[1] marked")
        assert finds(store, "before after") == found[:1]
        assert finds(store, "half done") == found[1:2]
        assert finds(store, "marked") == found[2:]

    def test_the_name_of_a_tool(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_id = store.append_message("s", "tool", "out", tool_name="web_search")
        assert finds(store, "web_search") == [message_id]
        assert finds(store, "search") == [message_id]

    @pytest.mark.parametrize(
        "query",
        [
            "call_7f3",
            "run_it",
            "path",
            "/tmp/x.txt",
            "x.txt",
            "line2",
            '"line1 line2"',
            "café",
            "cafe",
            "😀",
            "世界",
            "42",
            "vv",
        ],
    )
    @pytest.mark.parametrize("as_text", [True, False])
    def test_calls_with_all_their_arguments(self, store: SessionDBProvider, query: str, as_text: bool) -> None:
        arguments = {
            "path": "/tmp/x.txt",
            "text": "line1\nline2 café 😀 世界",
            "number": 42,
            "list": ["u", {"k": "vv"}],
        }
        start(store, "s")
        say(store, "s", "other")
        given = json.dumps(arguments) if as_text else arguments
        message_id = store.append_message("s", "assistant", None, tool_calls=call(given))
        assert finds(store, query) == [message_id]

    @pytest.mark.parametrize("query", ["café", "line2", "😀", '"line1 line2"'])
    def test_arguments_with_escapes(self, store: SessionDBProvider, query: str) -> None:
        start(store, "s")
        given = '{"text": "line1\\nline2 caf\\u00e9 \\ud83d\\ude00"}'
        message_id = store.append_message("s", "assistant", "", tool_calls=call(given))
        assert finds(store, query) == [message_id]
        assert "\\u00e9" not in store.search_messages(query)[0]["snippet"]

    @pytest.mark.parametrize(
        "given", ['{"path": "/tmp/needle', "needle", '["needle"]', '"needle"', "{needle}", "needle \\u"]
    )
    def test_arguments_that_are_no_json(self, store: SessionDBProvider, given: str) -> None:
        start(store, "s")
        message_id = store.append_message("s", "assistant", None, tool_calls=call(given))
        assert finds(store, "needle") == [message_id]

    def test_a_word_in_the_text_and_one_in_a_call(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_id = store.append_message("s", "assistant", "let me see", tool_calls=call('{"path": "/tmp"}'))
        assert finds(store, "see tmp") == [message_id]
        assert finds(store, "see NOT tmp") == []

    @pytest.mark.parametrize("role", ["user", "assistant", "system"])
    def test_what_was_said_up_to_a_megabyte(self, store: SessionDBProvider, role: str) -> None:
        found = say(store, start(store, "s"), "filler " * 100_000 + "needle", role=role)
        assert finds(store, "needle") == found

    def test_the_beginning_and_the_end_of_what_a_tool_printed(self, store: SessionDBProvider) -> None:
        printed = "head " + "x " * 10_000 + "middle " + "x " * 20_000 + "tail"
        found = say(store, start(store, "s"), printed, role="tool")
        assert finds(store, "head") == found
        assert finds(store, "tail") == found
        assert finds(store, "middle") == found

    def test_not_the_middle_of_a_very_long_print(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "head " + "x " * 25_000 + "middle " + "x " * 25_000 + "tail", role="tool")
        assert (finds(store, "head"), finds(store, "middle"), finds(store, "tail")) == (found, [], found)

    def test_not_what_belongs_to_the_session(self, store: SessionDBProvider) -> None:
        start(store, "sessionname", source="sourcename", model="modelname")
        store.set_session_title("sessionname", "titlename")
        say(store, "sessionname", "text")
        for query in ("sessionname", "sourcename", "modelname", "titlename", "user"):
            assert finds(store, query) == []

    def test_messages_without_text_are_found_by_what_they_lack(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), None, "", [], "docker")
        assert sorted(finds(store, "NOT docker")) == found[:3]


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
            {"limit": None},
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
