"""An answer that is still being written is one row from its first words to its last."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import CALLS, contents, ids, only_message, say, session_of, start

UID = "answer-1"


def write(store: SessionDBProvider, text: str | None, finish_reason: str | None = "partial", **fields: Any) -> int:
    """Store an answer as far as it is written."""
    message = {"role": "assistant", "content": text, "finish_reason": finish_reason, "uid": UID} | fields
    return store.append_messages("s", [message])[0]


class TestPartialAnswer:
    def test_partial_answer_is_completed_in_place(self, store: SessionDBProvider) -> None:
        start(store, "s")
        (asked,) = say(store, "s", "tell me")
        first = write(store, "Once")
        assert write(store, "Once upon") == first
        assert write(store, "Once upon a time", "stop", token_count=4, reasoning="a tale") == first
        rows = store.get_messages("s")
        assert ids(rows) == [asked, first]
        assert contents(rows) == ["tell me", "Once upon a time"]
        assert (rows[1]["finish_reason"], rows[1]["token_count"], rows[1]["reasoning"]) == ("stop", 4, "a tale")

    def test_partial_answer_keeps_its_position_and_time(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        first = write(store, "Once")
        began = only_message(store, "s")["timestamp"]
        clock.advance(60)
        say(store, "s", "meanwhile")
        write(store, "Once upon a time", "stop")
        rows = store.get_messages("s")
        assert (ids(rows)[0], rows[0]["timestamp"], contents(rows)) == (first, began, ["Once upon a time", "meanwhile"])

    def test_partial_answer_is_counted_once(self, store: SessionDBProvider) -> None:
        start(store, "s")
        for text in ("Once", "Once upon", "Once upon a"):
            write(store, text)
        write(store, "Once upon a time", "tool_calls", tool_calls=CALLS)
        write(store, "Once upon a time", "tool_calls", tool_calls=CALLS)
        session = session_of(store, "s")
        assert (session["message_count"], session["tool_call_count"]) == (1, len(CALLS))
        assert store.message_count("s") == 1

    def test_partial_answer_is_found_by_its_new_words_and_not_by_removed_ones(self, store: SessionDBProvider) -> None:
        start(store, "s")
        write(store, "aardvark and")
        assert len(store.search_messages("aardvark")) == 1
        write(store, "aardvark and buffalo", "stop")
        assert [len(store.search_messages(word)) for word in ("aardvark", "buffalo")] == [1, 1]
        write(store, "quagga", "stop")
        assert len(store.search_messages("quagga")) == 0

    def test_partial_answer_can_become_shorter(self, store: SessionDBProvider) -> None:
        start(store, "s")
        write(store, "hmm", reasoning=None)
        write(store, "yes", "stop", reasoning="hmm")
        assert len(store.search_messages("hmm")) == 0
        row = only_message(store, "s")
        assert (row["content"], row["reasoning"]) == ("yes", "hmm")

    @pytest.mark.parametrize("finish_reason", ["stop", "interrupted", "cut", None])
    def test_complete_answer_is_never_changed(self, finish_reason: str | None, store: SessionDBProvider) -> None:
        start(store, "s")
        first = write(store, "all", finish_reason)
        assert write(store, "less") == write(store, "other", "stop") == first
        assert only_message(store, "s")["content"] == "all"

    def test_partial_answer_of_another_session_is_separate(self, store: SessionDBProvider) -> None:
        start(store, "s", "t")
        write(store, "Once")
        store.append_message("t", "assistant", "other", finish_reason="stop", uid=UID)
        assert only_message(store, "s")["content"] == "Once"

    def test_user_message_is_never_partial(self, store: SessionDBProvider) -> None:
        start(store, "s")
        for text in ("mine", "not mine"):
            store.append_message("s", "user", text, finish_reason="partial", uid=UID)
        assert only_message(store, "s")["content"] == "mine"

    def test_undone_partial_answer_stays_hidden_when_completed(self, store: SessionDBProvider) -> None:
        start(store, "s")
        (asked,) = say(store, "s", "tell me")
        write(store, "Once")
        store.rewind_to_message("s", asked)
        write(store, "Once upon a time", "tool_calls", tool_calls=CALLS)
        assert store.get_messages("s") == []
        session = session_of(store, "s")
        assert (session["message_count"], session["tool_call_count"]) == (0, 0)

    def test_partial_answer_copied_by_a_branch_is_completed_in_both(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "tell me")
        write(store, "Once")
        store.branch_session("s", "b")
        write(store, "Once upon a time", "stop")
        store.append_message("b", "assistant", "Once more", finish_reason="stop", uid=UID)
        assert [contents(store.get_messages(each))[-1] for each in ("s", "b")] == ["Once upon a time", "Once more"]
