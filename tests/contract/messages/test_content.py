"""The content of a message round-trips exactly."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import (
    PICTURE,
    column,
    only_message,
    say,
    start,
)
from tests.support.stores import Opener


class StringSubclass(str):
    """A string subclass, such as enums and template engines make."""

    __slots__ = ()


CONTENTS: dict[str, Any] = {
    "none": None,
    "empty text": "",
    "text": "hello",
    "spaces around": "  hello \n\t ",
    "line ends": "a\r\nb\rc\n",
    "scripts": "Grüße, 世界, שלום, नमस्ते, 🧑‍👩‍👧",
    "NUL": "a\0b",
    "only NUL": "\0",
    "NUL at the end": "end\0",
    "lone surrogate": "\ud83d",
    "surrogate pair": "\ud83d\ude00",
    "surrogate pair beside its character": "\U0001f600 \ud83d\ude00 \U0001f600",
    "surrogate pairs in a row": "\ud83d\ude00\ud83d\ude00\ude00\ud83d",
    "surrogates with SUBSTITUTE between": "\ud83d\x1a\ude00 \ud83d\x1a\x1a\ude00 \x1a \\u001a",
    "surrogates and NUL": "\udc80 \0 ü \ud800",
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028",
    "byte order mark": "\ufeffhello",
    "not a character": "\ufffe\uffff\U0010ffff",
    "combining": "e\u0301 is not \u00e9",
    "old sentinel": "\x00json:",
    "old sentinel with JSON": '\x00json:[{"type": "text", "text": "x"}]',
    "old sentinel with rubbish": "\x00json:{",
    "new sentinel": "\x01json:",
    "new sentinel with JSON": '\x01json:["x"]',
    "new sentinel with rubbish": "\x01json:{",
    "new sentinel twice": '\x01json:"\\u0001json:[]"',
    "looks like JSON": '[{"type": "text"}]',
    "digits": "12345678901234567890",
    "SQL": "'; DROP TABLE messages; --",
    "empty list": [],
    "empty dict": {},
    "multimodal": PICTURE,
    "dict": {"type": "text", "text": "hi", "nested": {"deep": [1, 2.5, True, None]}},
    "list of texts": ["a", "", "b"],
    "NUL inside a list": [{"type": "text", "text": "a\0b"}],
    "surrogate inside a list": [{"type": "text", "text": "\ud800"}],
    "surrogate pair inside a list": [{"type": "text", "text": "\ud83d\ude00", "\ud83d\ude00": ["\ud83d\x1a\ude00"]}],
    "sentinel inside a list": ["\x01json:[]", "\x00json:[]"],
    "large integer": [2**70],
    "infinity": [math.inf, -math.inf],
    "10 MB of ASCII": "hello you" * 1_165_085,
    "10 MB of CJK": "世" * 3_500_000,
}


class TestContent:
    @pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
    def test_content_round_trips_exactly(self, store: SessionDBProvider, content: Any) -> None:
        start(store, "s")
        store.append_message("s", "tool", content)
        found = only_message(store, "s")["content"]
        assert (type(found), found == content) == (type(content), True)

    @pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
    def test_content_is_replayed_exactly(self, store: SessionDBProvider, content: Any) -> None:
        start(store, "s")
        store.append_message("s", "tool", content)
        found = store.get_messages_as_conversation("s")[0]["content"]
        assert (type(found), found == content) == (type(content), True)

    def test_tuple_becomes_a_list(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", ({"type": "text", "text": "x"},))
        assert only_message(store, "s")["content"] == [{"type": "text", "text": "x"}]

    @pytest.mark.parametrize("text", ["hello", "a\0b", "\ud800", "\x00json:[1]", "\x01json:[1]"], ids=ascii)
    def test_string_of_another_class_round_trips_as_its_text(self, store: SessionDBProvider, text: str) -> None:
        start(store, "s")
        store.append_message("s", "user", StringSubclass(text))
        assert only_message(store, "s")["content"] == text

    @pytest.mark.parametrize("content", ["a\0b", '\x01json:["x"]', '\x00json:["x"]'], ids=ascii)
    def test_unusual_first_message_stays_the_preview_of_a_longer_session(
        self, store: SessionDBProvider, content: str
    ) -> None:
        start(store, "s")
        say(store, "s", content, "b", "c", "d", "e", "f", "g", "h")
        assert column(store.list_sessions_rich(), "preview") == [content]

    def test_content_is_durable(self, open_store: Opener) -> None:
        with open_store() as first:
            start(first, "s")
            first.append_message("s", "user", PICTURE)
        assert only_message(open_store(), "s")["content"] == PICTURE
