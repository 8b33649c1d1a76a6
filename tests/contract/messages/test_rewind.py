"""Rewinding: the end of a conversation is hidden, counted out, and can be brought back."""

from __future__ import annotations

import pytest

from hermes.errors import InvalidValue, UnknownMessage
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import at_once, column, contents, ids, say, session_of, start, talk

CALLS = [{"id": "c1", "function": {"name": "terminal", "arguments": "{}"}}]


@pytest.fixture
def found(store: SessionDBProvider) -> list[int]:
    """The ids of three turns in session `s`."""
    start(store, "s")
    return talk(store, "s", 3)


class TestRewind:
    def test_hides_the_target_and_all_after_it(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        assert ids(store.get_messages("s")) == found[:2]

    def test_deletes_nothing(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[0])
        assert ids(store.get_messages("s", include_inactive=True)) == found

    def test_answers_how_many_it_hid(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.rewind_to_message("s", found[2])["rewound_count"] == 4

    def test_answers_the_new_head(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.rewind_to_message("s", found[2])["new_head_id"] == found[1]

    def test_to_the_first_message_leaves_no_head(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.rewind_to_message("s", found[0])["new_head_id"] is None

    def test_answers_the_target_as_it_was(self, store: SessionDBProvider, found: list[int]) -> None:
        target = store.rewind_to_message("s", found[2])["target_message"]
        assert (target["id"], target["content"], target["active"]) == (found[2], "question 1", 1)

    def test_target_with_structured_content_is_decoded(self, store: SessionDBProvider) -> None:
        start(store, "s")
        parts = [{"type": "text", "text": "x"}]
        message_id = store.append_message("s", "user", parts)
        assert store.rewind_to_message("s", message_id)["target_message"]["content"] == parts

    def test_can_keep_the_target_and_hide_its_answer(self, store: SessionDBProvider, found: list[int]) -> None:
        answer = store.rewind_to_message("s", found[2], keep_target=True)
        assert (answer["rewound_count"], answer["new_head_id"]) == (3, found[2])
        assert ids(store.get_messages("s")) == found[:3]

    def test_kept_target_without_an_answer_hides_nothing(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[4], keep_target=True)
        assert store.rewind_to_message("s", found[4], keep_target=True)["rewound_count"] == 0

    def test_is_counted(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[4])
        store.rewind_to_message("s", found[2])
        assert session_of(store, "s")["rewind_count"] == 2

    def test_again_to_the_same_message_hides_nothing_more(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        assert store.rewind_to_message("s", found[2])["rewound_count"] == 0

    def test_leaves_other_sessions_alone(self, store: SessionDBProvider, found: list[int]) -> None:
        start(store, "other")
        say(store, "other", "mine")
        store.rewind_to_message("s", found[0])
        assert contents(store.get_messages("other")) == ["mine"]

    def test_conversation_goes_on_after_it(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        say(store, "s", "another question")
        assert contents(store.get_messages("s")) == ["question 0", "answer 0", "another question"]

    @pytest.mark.parametrize("session_id", ["other", "nobody"])
    def test_target_of_another_session_is_not_found(
        self, store: SessionDBProvider, found: list[int], session_id: str
    ) -> None:
        start(store, "other")
        with pytest.raises(UnknownMessage, match="not found"):
            store.rewind_to_message(session_id, found[2])

    def test_target_that_a_person_did_not_say_is_refused(self, store: SessionDBProvider, found: list[int]) -> None:
        with pytest.raises(InvalidValue, match="assistant"):
            store.rewind_to_message("s", found[1])

    def test_refused_rewind_is_not_counted(self, store: SessionDBProvider, found: list[int]) -> None:
        with pytest.raises(InvalidValue):
            store.rewind_to_message("s", found[1])
        assert session_of(store, "s")["rewind_count"] == 0


class TestCounts:
    """The counters say what is visible, before and after."""

    @pytest.fixture
    def target(self, store: SessionDBProvider) -> int:
        start(store, "s")
        store.append_message("s", "assistant", "x", tool_calls=CALLS)
        target = store.append_message("s", "user", "again")
        store.append_message("s", "assistant", "x", tool_calls=CALLS * 2)
        return target

    def test_rewinding_takes_messages_and_calls_off(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (1, 1)

    def test_restoring_puts_them_back(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        store.restore_rewound("s", target)
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (3, 3)

    def test_tools_are_counted_down_and_up(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        rewound = store.get_session_tools("s")
        store.restore_rewound("s", target)
        assert (rewound, store.get_session_tools("s")) == ({"terminal": 1}, {"terminal": 3})

    def test_rewinding_twice_counts_once(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        store.rewind_to_message("s", target)
        assert session_of(store, "s")["message_count"] == 1

    def test_message_count_method_agrees(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        assert store.message_count("s") == store.message_count() == 1

    def test_preview_is_of_what_is_visible(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        say(store, "s", "better question")
        assert column(store.list_sessions_rich(), "preview") == ["better question"]

    def test_preview_comes_back(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        store.restore_rewound("s", target)
        assert column(store.list_sessions_rich(), "preview") == ["again"]

    def test_a_rewound_session_is_not_an_empty_one(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", say(store, "s", "only")[0])
        store.end_session("s", "user_exit")
        assert store.delete_empty_sessions() == 0


class TestRestore:
    def test_shows_the_hidden_again(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        assert store.restore_rewound("s", found[2]) == 4
        assert ids(store.get_messages("s")) == found

    def test_can_begin_further_on(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        store.restore_rewound("s", found[4])
        assert ids(store.get_messages("s")) == [*found[:2], *found[4:]]

    def test_without_a_rewind_shows_nothing(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.restore_rewound("s", found[0]) == 0

    def test_leaves_the_count_of_rewinds(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        store.restore_rewound("s", found[2])
        assert session_of(store, "s")["rewind_count"] == 1

    def test_unknown_session_is_zero(self, store: SessionDBProvider) -> None:
        assert store.restore_rewound("nobody", 1) == 0


class TestAuditTrail:
    def test_names_every_rewind_and_restore(self, store: SessionDBProvider, clock: FakeClock, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        clock.advance(5)
        store.restore_rewound("s", found[4])
        trail = [
            (each["action"], each["target_message_id"], each["message_count"], each["at"])
            for each in store.list_rewinds("s")
        ]
        assert trail == [("rewind", found[2], 4, NOW), ("restore", found[4], 2, NOW + 5)]

    def test_restore_that_showed_nothing_leaves_no_trace(self, store: SessionDBProvider, found: list[int]) -> None:
        store.restore_rewound("s", found[0])
        assert store.list_rewinds("s") == []

    def test_of_an_unknown_session_is_empty(self, store: SessionDBProvider) -> None:
        assert store.list_rewinds("nobody") == []


class TestRecentUserMessages:
    def test_come_newest_first(self, store: SessionDBProvider, found: list[int]) -> None:
        assert ids(store.list_recent_user_messages("s")) == [found[4], found[2], found[0]]

    def test_have_id_time_and_preview(self, store: SessionDBProvider, found: list[int]) -> None:
        newest = store.list_recent_user_messages("s", limit=1)
        assert newest == [{"id": found[4], "timestamp": NOW, "preview": "question 2"}]

    def test_leave_rewound_ones_out(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        assert ids(store.list_recent_user_messages("s")) == [found[0]]

    def test_show_rewound_ones_when_asked(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        assert len(store.list_recent_user_messages("s", include_inactive=True)) == 3

    @pytest.mark.parametrize(
        ("content", "preview"),
        [
            ("a\n\tb   c", "a b c"),
            ("x" * 80, "x" * 80),
            ("x" * 81, "x" * 77 + "..."),
            ([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}], "look"),
            ([{"type": "image_url", "image_url": {}}], "[multimodal content]"),
            (None, ""),
        ],
    )
    def test_preview_is_one_line(self, store: SessionDBProvider, content: object, preview: str) -> None:
        start(store, "s")
        say(store, "s", content)
        assert column(store.list_recent_user_messages("s"), "preview") == [preview]

    def test_of_an_unknown_session_are_none(self, store: SessionDBProvider) -> None:
        assert store.list_recent_user_messages("nobody") == []


class TestTogether:
    def test_counters_stay_true_while_others_write_rewind_and_restore(self, store: SessionDBProvider) -> None:
        start(store, "s")
        target = talk(store, "s", 2)[2]

        def work(number: int) -> None:
            for _ in range(5):
                if number % 3 == 0:
                    store.rewind_to_message("s", target)
                elif number % 3 == 1:
                    store.restore_rewound("s", target)
                else:
                    store.append_message("s", "assistant", "x", tool_calls=CALLS)

        at_once(6, work)
        visible = store.get_messages("s")
        calls = sum(len(each["tool_calls"] or []) for each in visible)
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (len(visible), calls)
