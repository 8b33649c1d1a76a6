"""An answer that is still being written: one row from its first words to its last."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import CALLS, contents, ids, only_message, say, session_of, start

UID = "answer-1"


def write(store: SessionDBProvider, text: str | None, finish_reason: str | None = "partial", **fields: Any) -> int:
    """Store an answer as far as it has come."""
    message = {"role": "assistant", "content": text, "finish_reason": finish_reason, "uid": UID} | fields
    return store.append_messages("s", [message])[0]


class TestOpenAnswer:
    def test_grows_in_its_place(self, store: SessionDBProvider) -> None:
        start(store, "s")
        (asked,) = say(store, "s", "tell me")
        first = write(store, "Once")
        assert write(store, "Once upon") == first
        assert write(store, "Once upon a time", "stop", token_count=4, reasoning="a tale") == first
        rows = store.get_messages("s")
        assert ids(rows) == [asked, first]
        assert contents(rows) == ["tell me", "Once upon a time"]
        assert (rows[1]["finish_reason"], rows[1]["token_count"], rows[1]["reasoning"]) == ("stop", 4, "a tale")

    def test_keeps_its_place_and_its_time(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        first = write(store, "Once")
        began = only_message(store, "s")["timestamp"]
        clock.advance(60)
        say(store, "s", "meanwhile")
        write(store, "Once upon a time", "stop")
        rows = store.get_messages("s")
        assert (ids(rows)[0], rows[0]["timestamp"], contents(rows)) == (first, began, ["Once upon a time", "meanwhile"])

    def test_is_counted_once(self, store: SessionDBProvider) -> None:
        start(store, "s")
        for text in ("Once", "Once upon", "Once upon a"):
            write(store, text)
        write(store, "Once upon a time", "tool_calls", tool_calls=CALLS)
        write(store, "Once upon a time", "tool_calls", tool_calls=CALLS)
        session = session_of(store, "s")
        assert (session["message_count"], session["tool_call_count"]) == (1, len(CALLS))
        assert store.message_count("s") == 1

    def test_is_found_by_its_last_words_and_not_by_those_that_went(self, store: SessionDBProvider) -> None:
        start(store, "s")
        write(store, "aardvark and")
        assert len(store.search_messages("aardvark")) == 1
        write(store, "aardvark and buffalo", "stop")
        assert [len(store.search_messages(word)) for word in ("aardvark", "buffalo")] == [1, 1]
        write(store, "quagga", "stop")
        assert len(store.search_messages("quagga")) == 0

    def test_can_become_shorter(self, store: SessionDBProvider) -> None:
        start(store, "s")
        write(store, "hmm", reasoning=None)
        write(store, "yes", "stop", reasoning="hmm")
        assert len(store.search_messages("hmm")) == 0
        row = only_message(store, "s")
        assert (row["content"], row["reasoning"]) == ("yes", "hmm")

    @pytest.mark.parametrize("finish_reason", ["stop", "interrupted", "cut", None])
    def test_that_is_complete_is_never_changed(self, finish_reason: str | None, store: SessionDBProvider) -> None:
        start(store, "s")
        first = write(store, "all", finish_reason)
        assert write(store, "less") == write(store, "other", "stop") == first
        assert only_message(store, "s")["content"] == "all"

    def test_of_another_session_is_another(self, store: SessionDBProvider) -> None:
        start(store, "s", "t")
        write(store, "Once")
        store.append_message("t", "assistant", "other", finish_reason="stop", uid=UID)
        assert only_message(store, "s")["content"] == "Once"

    def test_that_a_person_said_is_not_open(self, store: SessionDBProvider) -> None:
        start(store, "s")
        for text in ("mine", "not mine"):
            store.append_message("s", "user", text, finish_reason="partial", uid=UID)
        assert only_message(store, "s")["content"] == "mine"

    def test_that_was_rewound_stays_hidden_when_it_is_completed(self, store: SessionDBProvider) -> None:
        start(store, "s")
        (asked,) = say(store, "s", "tell me")
        write(store, "Once")
        store.rewind_to_message("s", asked)
        write(store, "Once upon a time", "tool_calls", tool_calls=CALLS)
        assert store.get_messages("s") == []
        session = session_of(store, "s")
        assert (session["message_count"], session["tool_call_count"]) == (0, 0)

    def test_carried_over_by_a_branch_is_completed_in_both(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "tell me")
        write(store, "Once")
        store.branch_session("s", "b")
        write(store, "Once upon a time", "stop")
        store.append_message("b", "assistant", "Once more", finish_reason="stop", uid=UID)
        assert [contents(store.get_messages(each))[-1] for each in ("s", "b")] == ["Once upon a time", "Once more"]
