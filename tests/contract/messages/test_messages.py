"""Messages are counted, and read page by page."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import (
    CALLS,
    column,
    contents,
    ids,
    only_message,
    say,
    session_of,
    start,
    talk,
)


class TestCounts:
    def test_every_message_is_counted(self, store: SessionDBProvider) -> None:
        start(store, "s")
        talk(store, "s", 3)
        assert session_of(store, "s")["message_count"] == 6

    @pytest.mark.parametrize(("tool_calls", "count"), [(CALLS, 2), ({"id": "x"}, 1), ([], 0), (None, 0), ("call", 1)])
    def test_tool_calls_are_counted_by_call(self, store: SessionDBProvider, tool_calls: Any, count: int) -> None:
        start(store, "s")
        store.append_message("s", "assistant", tool_calls=tool_calls)
        assert session_of(store, "s")["tool_call_count"] == count

    def test_tool_results_are_not_counted_as_calls(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "tool", "output", tool_name="terminal", tool_call_id="c1")
        assert session_of(store, "s")["tool_call_count"] == 0

    def test_called_tools_are_counted_by_name(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", tool_calls=CALLS)
        store.append_message("s", "assistant", tool_calls=CALLS[:1])
        assert list(store.get_session_tools("s").items()) == [("terminal", 2), ("read_file", 1)]

    def test_names_of_tools_round_trip_exactly(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", tool_calls=[{"function": {"name": "a\0b"}}])
        assert store.get_session_tools("s") == {"a\0b": 1}

    def test_message_count_of_one_session(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        talk(store, "a", 2)
        talk(store, "b", 1)
        assert store.message_count("a") == 4

    def test_message_count_of_all_sessions(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        talk(store, "a", 2)
        talk(store, "b", 1)
        assert store.message_count() == 6

    def test_message_count_of_an_unknown_session_is_zero(self, store: SessionDBProvider) -> None:
        assert store.message_count("missing") == 0


class TestGet:
    def test_unknown_session_has_no_messages(self, store: SessionDBProvider) -> None:
        assert store.get_messages("missing") == []

    def test_sessions_do_not_mix(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        for n in range(3):
            say(store, "a", f"a{n}")
            say(store, "b", f"b{n}")
        assert contents(store.get_messages("a")) == ["a0", "a1", "a2"]

    def test_row_has_every_documented_column(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "x")
        assert set(only_message(store, "s")) >= {
            "id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp",
            "token_count", "finish_reason", "reasoning", "reasoning_content", "reasoning_details",
            "codex_reasoning_items", "codex_message_items", "platform_message_id", "observed", "active", "uid",
        }  # fmt: skip

    def test_inactive_messages_are_left_out(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", talk(store, "s", 2)[2])
        assert contents(store.get_messages("s")) == ["question 0", "answer 0"]

    def test_inactive_messages_are_returned_on_request(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", talk(store, "s", 2)[2])
        assert column(store.get_messages("s", include_inactive=True), "active") == [1, 1, 0, 0]

    def test_messages_can_be_paged_forwards(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = talk(store, "s", 3)
        assert ids(store.get_messages("s", after_id=found[1], limit=2)) == found[2:4]

    def test_messages_paged_backwards_are_in_order(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = talk(store, "s", 3)
        assert ids(store.get_messages("s", before_id=found[4], limit=2)) == found[2:4]

    def test_limit_returns_the_first_messages(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = talk(store, "s", 3)
        assert ids(store.get_messages("s", limit=2)) == found[:2]
