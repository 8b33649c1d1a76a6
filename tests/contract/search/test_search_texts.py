"""The searched text of a message: every text of it, and tool calls with their arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import say, start
from tests.support.searches import finds


def call(arguments: Any, name: str = "run_it", call_id: str = "call_7f3") -> list[dict[str, Any]]:
    """Return a tool call as models write it."""
    return [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]


class TestWhatIsSearched:
    @pytest.mark.parametrize("query", ["first", "second", "first second", '"first part"', "cat.png"])
    def test_every_text_of_structured_content_is_searched(self, store: SessionDBProvider, query: str) -> None:
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

    def test_text_in_another_script_in_structured_content_is_searched(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), [{"type": "text", "text": "记忆断裂 привет café 👍"}])
        for query in ("忆断", "привет", "cafe", "👍", "记"):
            assert finds(store, query) == found

    def test_text_with_characters_that_no_database_holds_is_searched(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "before\0after", "half \ud83d done", "\x01json:[1] marked")
        assert finds(store, "before after") == found[:1]
        assert finds(store, "half done") == found[1:2]
        assert finds(store, "marked") == found[2:]

    def test_the_name_of_a_tool_is_searched(self, store: SessionDBProvider) -> None:
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
    def test_calls_are_searched_with_all_their_arguments(
        self, store: SessionDBProvider, query: str, as_text: bool
    ) -> None:
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
    def test_arguments_with_escapes_are_searched(self, store: SessionDBProvider, query: str) -> None:
        start(store, "s")
        given = '{"text": "line1\\nline2 caf\\u00e9 \\ud83d\\ude00"}'
        message_id = store.append_message("s", "assistant", "", tool_calls=call(given))
        assert finds(store, query) == [message_id]
        assert "\\u00e9" not in store.search_messages(query)[0]["snippet"]

    @pytest.mark.parametrize(
        "given", ['{"path": "/tmp/needle', "needle", '["needle"]', '"needle"', "{needle}", "needle \\u"]
    )
    def test_arguments_that_are_no_json_are_searched(self, store: SessionDBProvider, given: str) -> None:
        start(store, "s")
        message_id = store.append_message("s", "assistant", None, tool_calls=call(given))
        assert finds(store, "needle") == [message_id]

    def test_a_word_in_the_text_and_one_in_a_call_match_together(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_id = store.append_message("s", "assistant", "let me see", tool_calls=call('{"path": "/tmp"}'))
        assert finds(store, "see tmp") == [message_id]
        assert finds(store, "see NOT tmp") == []

    @pytest.mark.parametrize("role", ["user", "assistant", "system"])
    def test_text_is_searched_up_to_a_megabyte(self, store: SessionDBProvider, role: str) -> None:
        found = say(store, start(store, "s"), "filler " * 100_000 + "needle", role=role)
        assert finds(store, "needle") == found

    def test_start_and_end_of_a_tool_result_are_searched(self, store: SessionDBProvider) -> None:
        printed = "head " + "x " * 10_000 + "middle " + "x " * 20_000 + "tail"
        found = say(store, start(store, "s"), printed, role="tool")
        assert finds(store, "head") == found
        assert finds(store, "tail") == found
        assert finds(store, "middle") == found

    def test_middle_of_a_very_long_tool_result_is_not_searched(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "head " + "x " * 25_000 + "middle " + "x " * 25_000 + "tail", role="tool")
        assert (finds(store, "head"), finds(store, "middle"), finds(store, "tail")) == (found, [], found)

    def test_columns_of_the_session_are_not_searched(self, store: SessionDBProvider) -> None:
        start(store, "sessionname", source="sourcename", model="modelname")
        store.set_session_title("sessionname", "titlename")
        say(store, "sessionname", "text")
        for query in ("sessionname", "sourcename", "modelname", "titlename", "user"):
            assert finds(store, query) == []

    def test_messages_without_text_are_found_by_negative_queries(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), None, "", [], "docker")
        assert sorted(finds(store, "NOT docker")) == found[:3]
