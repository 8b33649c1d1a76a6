"""The transcript of a session is replaced or deleted as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hermes.errors import InvalidValue, UnknownSession
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import (
    CALLS,
    PICTURE,
    column,
    contents,
    ids,
    only_message,
    say,
    session_of,
    start,
    talk,
)


class TestReplace:
    def test_replace_stores_the_new_transcript_instead_of_the_old(self, store: SessionDBProvider) -> None:
        start(store, "s")
        talk(store, "s", 2)
        store.replace_messages("s", [{"role": "user", "content": "new"}])
        assert contents(store.get_messages("s", include_inactive=True)) == ["new"]

    def test_replace_deletes_undone_messages_too(self, store: SessionDBProvider) -> None:
        start(store, "s")
        target = talk(store, "s", 1)[0]
        store.rewind_to_message("s", target)
        store.replace_messages("s", [])
        assert store.get_messages("s", include_inactive=True) == []

    def test_replace_sets_the_counters(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", "x", tool_calls=CALLS)
        store.replace_messages("s", [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": CALLS[:1]}])
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (2, 1)

    def test_replace_sets_the_preview(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "old")
        store.replace_messages("s", [{"role": "user", "content": "new"}])
        assert column(store.list_sessions_rich(), "preview") == ["new"]

    def test_replace_recounts_the_tools(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", "x", tool_calls=CALLS)
        store.replace_messages("s", [{"role": "assistant", "tool_calls": CALLS[:1]}])
        assert store.get_session_tools("s") == {"terminal": 1}

    def test_replace_leaves_the_count_of_rewinds(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", talk(store, "s", 1)[0])
        store.replace_messages("s", [{"role": "user", "content": "a"}])
        assert session_of(store, "s")["rewind_count"] == 1

    def test_replace_leaves_other_sessions_alone(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        say(store, "b", "mine")
        store.replace_messages("a", [{"role": "user", "content": "x"}])
        assert contents(store.get_messages("b")) == ["mine"]

    def test_role_defaults_to_unknown(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.replace_messages("s", [{"content": "x"}])
        assert only_message(store, "s")["role"] == "unknown"

    @pytest.mark.parametrize(("role", "kept"), [("assistant", "thought"), ("user", None), ("tool", None)])
    def test_reasoning_is_kept_for_the_assistant_only(
        self, store: SessionDBProvider, role: str, kept: str | None
    ) -> None:
        start(store, "s")
        store.replace_messages("s", [{"role": role, "content": "x", "reasoning": "thought"}])
        assert only_message(store, "s")["reasoning"] == kept

    def test_message_id_is_stored_as_platform_message_id(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.replace_messages("s", [{"role": "user", "content": "x", "message_id": "tg-1"}])
        assert only_message(store, "s")["platform_message_id"] == "tg-1"

    def test_given_times_are_kept(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.replace_messages("s", [{"role": "user", "content": "x", "timestamp": 5.0}])
        assert only_message(store, "s")["timestamp"] == 5.0

    def test_missing_times_grow_from_now(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.replace_messages("s", [{"role": "user", "content": str(n)} for n in range(3)])
        first, second, third = column(store.get_messages("s"), "timestamp")
        assert NOW == first < second < third

    def test_order_of_replaced_messages_is_that_of_the_list(self, store: SessionDBProvider) -> None:
        start(store, "s")
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "new"},
            {"role": "user", "content": "old", "timestamp": 5.0},
        ]
        store.replace_messages("s", messages)
        assert contents(store.get_messages_as_conversation("s")) == ["new", "old"]

    def test_a_conversation_that_is_replaced_by_itself_reads_the_same(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", PICTURE, platform_message_id="tg-1", observed=True)
        store.append_message("s", "assistant", None, tool_calls=CALLS, reasoning="hm", reasoning_details=[{"a": 1}])
        store.append_message("s", "tool", "done", tool_name="terminal", tool_call_id="c1")
        store.append_message("s", "assistant", "ready", finish_reason="stop", reasoning_content="")
        before = store.get_messages_as_conversation("s")
        store.replace_messages("s", before)
        assert store.get_messages_as_conversation("s") == before

    def test_an_invalid_message_leaves_the_old_transcript(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "old")
        messages: list[dict[str, object]] = [{"role": "user", "content": "new"}, {"role": "user", "content": object()}]
        with pytest.raises(InvalidValue):
            store.replace_messages("s", messages)
        assert contents(store.get_messages("s")) == ["old"]

    def test_an_iterable_that_fails_leaves_the_old_transcript(self, store: SessionDBProvider) -> None:
        def failing() -> Iterator[dict[str, str]]:
            yield {"role": "user", "content": "new"}
            raise RuntimeError("the source broke")

        start(store, "s")
        say(store, "s", "old")
        with pytest.raises(RuntimeError, match="the source broke"):
            store.replace_messages("s", failing())
        assert contents(store.get_messages("s")) == ["old"]

    @pytest.mark.parametrize("messages", [[], [{"role": "user", "content": "x"}]])
    def test_replace_in_an_unknown_session_is_an_error(
        self, store: SessionDBProvider, messages: list[dict[str, str]]
    ) -> None:
        with pytest.raises(UnknownSession):
            store.replace_messages("missing", messages)

    def test_order_by_activity_follows_the_new_times(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "replaced", "other", started_at=100.0)
        store.append_message("replaced", "user", "new", timestamp=900.0)
        store.append_message("other", "user", "middle", timestamp=500.0)
        store.replace_messages("replaced", [{"role": "user", "content": "old", "timestamp": 200.0}])
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["other", "replaced"]


class TestClear:
    def test_clear_deletes_all_messages_and_keeps_the_session(self, store: SessionDBProvider) -> None:
        start(store, "s", model="m")
        talk(store, "s", 2)
        assert store.clear_messages("s")
        assert (store.get_messages("s"), session_of(store, "s")["model"]) == ([], "m")

    def test_clear_resets_the_counters(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", "x", tool_calls=CALLS)
        store.clear_messages("s")
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"], store.get_session_tools("s")) == (0, 0, {})

    def test_clear_removes_the_preview(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "secret")
        store.clear_messages("s")
        assert column(store.list_sessions_rich(), "preview") == [""]

    def test_last_activity_of_a_cleared_session_is_its_start(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        clock.advance(50)
        say(store, "s", "x")
        store.clear_messages("s")
        assert session_of(store, "s")["last_active"] == NOW

    def test_order_by_activity_forgets_cleared_messages(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "cleared")
        clock.advance(1)
        start(store, "other")
        clock.advance(1)
        say(store, "cleared", "x")
        store.clear_messages("cleared")
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["other", "cleared"]

    def test_clear_of_an_unknown_session_returns_false(self, store: SessionDBProvider) -> None:
        assert not store.clear_messages("missing")
