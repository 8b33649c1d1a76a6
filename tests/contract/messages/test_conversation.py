"""Replay: stored messages become the conversation for a model."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import compress, contents, say, start, talk

CALLS = [{"id": "c1", "function": {"name": "terminal", "arguments": "{}"}}]
NOTE = "[System note: The following is recalled memory context, NOT new user input.]"


def replay_one(store: SessionDBProvider, role: str, content: Any = "x", **fields: Any) -> dict[str, Any]:
    """Return the conversation message for one stored message."""
    start(store, "s")
    store.append_message("s", role, content, **fields)
    (message,) = store.get_messages_as_conversation("s")
    return {**message}


class TestShape:
    def test_plain_message_has_role_content_and_time(self, store: SessionDBProvider) -> None:
        assert replay_one(store, "user", "hi") == {"role": "user", "content": "hi", "timestamp": NOW}

    def test_content_key_exists_even_if_it_is_none(self, store: SessionDBProvider) -> None:
        assert replay_one(store, "assistant", None)["content"] is None

    def test_time_zero_is_left_out(self, store: SessionDBProvider) -> None:
        assert "timestamp" not in replay_one(store, "user", timestamp=0)

    @pytest.mark.parametrize("field", ["id", "session_id", "token_count", "uid", "active"])
    def test_bookkeeping_is_left_out(self, store: SessionDBProvider, field: str) -> None:
        assert field not in replay_one(store, "user", token_count=5, uid="u")

    @pytest.mark.parametrize(
        ("stored", "shown"),
        [
            ({"tool_call_id": "c1"}, {"tool_call_id": "c1"}),
            ({"tool_name": "terminal"}, {"tool_name": "terminal"}),
            ({"tool_calls": CALLS}, {"tool_calls": CALLS}),
            ({"platform_message_id": "tg-1"}, {"message_id": "tg-1"}),
            ({"observed": True}, {"observed": True}),
            ({"finish_reason": "stop"}, {"finish_reason": "stop"}),
            ({"reasoning": "hm"}, {"reasoning": "hm"}),
            ({"reasoning_content": "hm"}, {"reasoning_content": "hm"}),
            ({"reasoning_content": ""}, {"reasoning_content": ""}),
            ({"reasoning_details": [{"a": 1}]}, {"reasoning_details": [{"a": 1}]}),
            ({"codex_reasoning_items": [{"a": 1}]}, {"codex_reasoning_items": [{"a": 1}]}),
            ({"codex_message_items": [{"a": 1}]}, {"codex_message_items": [{"a": 1}]}),
            ({"tool_call_id": ""}, {}),
            ({"tool_name": ""}, {}),
            ({"tool_calls": []}, {}),
            ({"platform_message_id": ""}, {}),
            ({"observed": False}, {}),
            ({"finish_reason": ""}, {}),
            ({"reasoning": ""}, {}),
            ({"reasoning_details": []}, {}),
        ],
    )
    def test_conversation_message_of_the_assistant_has_only_present_fields(
        self, store: SessionDBProvider, stored: dict[str, Any], shown: dict[str, Any]
    ) -> None:
        plain = {"role": "assistant", "content": "x", "timestamp": NOW}
        assert replay_one(store, "assistant", **stored) == {**plain, **shown}

    @pytest.mark.parametrize("role", ["user", "tool", "system"])
    def test_conversation_message_of_others_has_no_reasoning(self, store: SessionDBProvider, role: str) -> None:
        thoughts = {"reasoning": "x", "reasoning_content": "x", "reasoning_details": [1], "codex_message_items": [1]}
        message = replay_one(store, role, **thoughts, finish_reason="stop", codex_reasoning_items=[1])
        assert message == {"role": role, "content": "x", "timestamp": NOW}

    def test_unknown_session_has_an_empty_conversation(self, store: SessionDBProvider) -> None:
        assert store.get_messages_as_conversation("missing") == []

    def test_orphan_tool_results_stay(self, store: SessionDBProvider) -> None:
        assert replay_one(store, "tool", "output", tool_call_id="gone")["content"] == "output"


class TestMemoryFences:
    @pytest.mark.parametrize(
        ("stored", "shown"),
        [
            ("<memory-context>likes tea</memory-context>hello", "hello"),
            ("hello <MEMORY-CONTEXT>\nlines\n</Memory-Context> you", "hello  you"),
            ("< memory-context >x</ memory-context >hello", "hello"),
            ("<memory-context>a</memory-context>one<memory-context>b</memory-context>two", "onetwo"),
            (f"{NOTE}\nhello", "hello"),
            (f"<memory-context>\n{NOTE}\nlikes tea\n</memory-context>\n\nhello", "hello"),
            ("stray </memory-context> tag", "stray  tag"),
            ("open <memory-context> end", "open  end"),
            ("  hello\n", "hello"),
            ("<b>[note]</b>", "<b>[note]</b>"),
            ("<memory-context>all</memory-context>", ""),
        ],
    )
    @pytest.mark.parametrize("role", ["user", "assistant"])
    def test_memory_fences_are_removed_from_user_and_assistant_text(
        self, store: SessionDBProvider, role: str, stored: str, shown: str
    ) -> None:
        assert replay_one(store, role, stored)["content"] == shown

    @pytest.mark.parametrize("role", ["system", "tool"])
    def test_memory_fences_are_left_in_other_text(self, store: SessionDBProvider, role: str) -> None:
        text = " <memory-context>x</memory-context> \n"
        assert replay_one(store, role, text)["content"] == text

    def test_memory_fences_are_left_in_structured_content(self, store: SessionDBProvider) -> None:
        parts = [{"type": "text", "text": " <memory-context>x</memory-context> "}]
        assert replay_one(store, "user", parts)["content"] == parts

    def test_memory_fences_are_left_in_what_is_stored(self, store: SessionDBProvider) -> None:
        replay_one(store, "user", " <memory-context>x</memory-context>hi ")
        assert contents(store.get_messages("s")) == [" <memory-context>x</memory-context>hi "]


class TestUndone:
    def test_undone_messages_are_left_out_of_replay(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", talk(store, "s", 2)[2])
        assert contents(store.get_messages_as_conversation("s")) == ["question 0", "answer 0"]

    def test_undone_messages_are_replayed_on_request(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", talk(store, "s", 2)[2])
        assert len(store.get_messages_as_conversation("s", include_inactive=True)) == 4


class TestAncestors:
    def test_ancestors_are_left_out_unless_requested(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        say(store, "root", "before")
        compress(store, clock, "root", "tip")
        say(store, "tip", "after")
        assert contents(store.get_messages_as_conversation("tip")) == ["after"]

    def test_ancestors_come_first_oldest_before_newest(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        say(store, "root", "one")
        compress(store, clock, "root", "middle")
        say(store, "middle", "two")
        compress(store, clock, "middle", "tip")
        say(store, "tip", "three")
        assert contents(store.get_messages_as_conversation("tip", include_ancestors=True)) == ["one", "two", "three"]

    def test_ancestors_come_first_even_if_their_clock_was_ahead(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        store.append_message("root", "user", "one", timestamp=NOW + 1000)
        compress(store, clock, "root", "tip")
        say(store, "tip", "two")
        assert contents(store.get_messages_as_conversation("tip", include_ancestors=True)) == ["one", "two"]

    @pytest.mark.parametrize("kind", ["branch", "delegate", "reset", "import", None])
    def test_ancestors_are_followed_along_compression_only(self, store: SessionDBProvider, kind: str | None) -> None:
        start(store, "parent")
        say(store, "parent", "theirs")
        start(store, "child", parent_session_id="parent", child_kind=kind)
        say(store, "child", "mine")
        assert contents(store.get_messages_as_conversation("child", include_ancestors=True)) == ["mine"]

    def test_branch_that_copied_its_history_does_not_replay_it_twice(self, store: SessionDBProvider) -> None:
        start(store, "parent")
        talk(store, "parent", 2)
        history = store.get_messages_as_conversation("parent")
        start(store, "branch", parent_session_id="parent", child_kind="branch")
        store.append_messages("branch", [{"role": each["role"], "content": each["content"]} for each in history])
        replayed = store.get_messages_as_conversation("branch", include_ancestors=True)
        assert contents(replayed) == contents(history)

    def test_question_copied_by_compression_is_shown_once(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        say(store, "root", "question")
        compress(store, clock, "root", "tip")
        say(store, "tip", "question")
        say(store, "tip", "answer", role="assistant")
        replayed = store.get_messages_as_conversation("tip", include_ancestors=True)
        assert contents(replayed) == ["question", "answer"]

    def test_question_asked_again_after_an_answer_is_shown_again(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        say(store, "root", "again")
        say(store, "root", "answer", role="assistant")
        compress(store, clock, "root", "tip")
        say(store, "tip", "again")
        replayed = store.get_messages_as_conversation("tip", include_ancestors=True)
        assert contents(replayed) == ["again", "answer", "again"]

    def test_repeated_question_stays_without_ancestors(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "again", "again")
        assert contents(store.get_messages_as_conversation("s")) == ["again", "again"]

    def test_undone_messages_of_ancestors_stay_hidden(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        found = say(store, "root", "kept", "rewound")
        store.rewind_to_message("root", found[1])
        compress(store, clock, "root", "tip")
        assert contents(store.get_messages_as_conversation("tip", include_ancestors=True)) == ["kept"]
