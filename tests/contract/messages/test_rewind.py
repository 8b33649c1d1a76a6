"""The end of a conversation is undone, not counted any more, and can be restored."""

from __future__ import annotations

import pytest

from hermes.errors import InvalidValue, UnknownMessage
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import at_once, column, contents, ids, say, session_of, start, talk

CALLS = [{"id": "c1", "function": {"name": "terminal", "arguments": "{}"}}]


@pytest.fixture
def found(store: SessionDBProvider) -> list[int]:
    """Return the ids of three turns in session `s`."""
    start(store, "s")
    return talk(store, "s", 3)


class TestUndo:
    def test_undo_hides_the_target_and_all_after_it(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        assert ids(store.get_messages("s")) == found[:2]

    def test_undo_deletes_nothing(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[0])
        assert ids(store.get_messages("s", include_inactive=True)) == found

    def test_undo_returns_how_many_messages_it_hid(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.rewind_to_message("s", found[2])["rewound_count"] == 4

    def test_undo_returns_the_new_head(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.rewind_to_message("s", found[2])["new_head_id"] == found[1]

    def test_undo_to_the_first_message_leaves_no_head(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.rewind_to_message("s", found[0])["new_head_id"] is None

    def test_undo_returns_the_unchanged_target(self, store: SessionDBProvider, found: list[int]) -> None:
        target = store.rewind_to_message("s", found[2])["target_message"]
        assert (target["id"], target["content"], target["active"]) == (found[2], "question 1", 1)

    def test_target_with_structured_content_is_decoded(self, store: SessionDBProvider) -> None:
        start(store, "s")
        parts = [{"type": "text", "text": "x"}]
        message_id = store.append_message("s", "user", parts)
        assert store.rewind_to_message("s", message_id)["target_message"]["content"] == parts

    def test_undo_can_keep_the_target_and_hide_its_answer(self, store: SessionDBProvider, found: list[int]) -> None:
        answer = store.rewind_to_message("s", found[2], keep_target=True)
        assert (answer["rewound_count"], answer["new_head_id"]) == (3, found[2])
        assert ids(store.get_messages("s")) == found[:3]

    def test_kept_target_without_an_answer_hides_nothing(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[4], keep_target=True)
        assert store.rewind_to_message("s", found[4], keep_target=True)["rewound_count"] == 0

    def test_kept_target_keeps_the_system_messages_directly_after_it(
        self, store: SessionDBProvider, found: list[int]
    ) -> None:
        (target,) = say(store, "s", "question")
        context = store.append_message("s", "system", "[Attached context]")
        store.append_message("s", "assistant", "answer")
        store.append_message("s", "system", "later")
        assert store.rewind_to_message("s", target, keep_target=True)["new_head_id"] == context
        assert store.rewind_to_message("s", target, keep_target=True)["rewound_count"] == 0
        assert store.rewind_to_message("s", target)["rewound_count"] == 2

    def test_undo_is_counted(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[4])
        store.rewind_to_message("s", found[2])
        assert session_of(store, "s")["rewind_count"] == 2

    def test_undo_repeated_for_the_same_message_hides_nothing_more(
        self, store: SessionDBProvider, found: list[int]
    ) -> None:
        store.rewind_to_message("s", found[2])
        assert store.rewind_to_message("s", found[2])["rewound_count"] == 0

    def test_undo_leaves_other_sessions_alone(self, store: SessionDBProvider, found: list[int]) -> None:
        start(store, "other")
        say(store, "other", "mine")
        store.rewind_to_message("s", found[0])
        assert contents(store.get_messages("other")) == ["mine"]

    def test_conversation_continues_after_an_undo(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        say(store, "s", "another question")
        assert contents(store.get_messages("s")) == ["question 0", "answer 0", "another question"]

    @pytest.mark.parametrize("session_id", ["other", "missing"])
    def test_target_of_another_session_is_not_found(
        self, store: SessionDBProvider, found: list[int], session_id: str
    ) -> None:
        start(store, "other")
        with pytest.raises(UnknownMessage, match="not found"):
            store.rewind_to_message(session_id, found[2])

    def test_target_that_is_no_user_message_is_refused(self, store: SessionDBProvider, found: list[int]) -> None:
        with pytest.raises(InvalidValue, match="assistant"):
            store.rewind_to_message("s", found[1])

    def test_refused_undo_is_not_counted(self, store: SessionDBProvider, found: list[int]) -> None:
        with pytest.raises(InvalidValue):
            store.rewind_to_message("s", found[1])
        assert session_of(store, "s")["rewind_count"] == 0


class TestCounts:
    """The counters count the visible messages, before and after."""

    @pytest.fixture
    def target(self, store: SessionDBProvider) -> int:
        start(store, "s")
        store.append_message("s", "assistant", "x", tool_calls=CALLS)
        target = store.append_message("s", "user", "again")
        store.append_message("s", "assistant", "x", tool_calls=CALLS * 2)
        return target

    def test_undo_lowers_message_and_call_counts(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (1, 1)

    def test_restore_raises_message_and_call_counts(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        store.restore_rewound("s", target)
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (3, 3)

    def test_tools_are_counted_down_and_up(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        rewound = store.get_session_tools("s")
        store.restore_rewound("s", target)
        assert (rewound, store.get_session_tools("s")) == ({"terminal": 1}, {"terminal": 3})

    def test_repeated_undo_counts_once(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        store.rewind_to_message("s", target)
        assert session_of(store, "s")["message_count"] == 1

    def test_message_count_method_agrees(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        assert store.message_count("s") == store.message_count() == 1

    def test_preview_is_of_the_visible_messages(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        say(store, "s", "better question")
        assert column(store.list_sessions_rich(), "preview") == ["better question"]

    def test_preview_returns_after_a_restore(self, store: SessionDBProvider, target: int) -> None:
        store.rewind_to_message("s", target)
        store.restore_rewound("s", target)
        assert column(store.list_sessions_rich(), "preview") == ["again"]

    def test_a_session_with_only_undone_messages_is_not_empty(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", say(store, "s", "only")[0])
        store.end_session("s", "user_exit")
        assert store.delete_empty_sessions() == 0


class TestRestore:
    def test_restore_shows_undone_messages_again(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        assert store.restore_rewound("s", found[2]) == 4
        assert ids(store.get_messages("s")) == found

    def test_restore_can_start_at_a_later_message(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        store.restore_rewound("s", found[4])
        assert ids(store.get_messages("s")) == [*found[:2], *found[4:]]

    def test_restore_without_an_undo_shows_nothing(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.restore_rewound("s", found[0]) == 0

    def test_restore_leaves_the_count_of_rewinds(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        store.restore_rewound("s", found[2])
        assert session_of(store, "s")["rewind_count"] == 1

    def test_restore_in_an_unknown_session_returns_zero(self, store: SessionDBProvider) -> None:
        assert store.restore_rewound("missing", 1) == 0


class TestAuditTrail:
    def test_audit_trail_names_every_rewind_and_restore(
        self, store: SessionDBProvider, clock: FakeClock, found: list[int]
    ) -> None:
        store.rewind_to_message("s", found[2])
        clock.advance(5)
        store.restore_rewound("s", found[4])
        trail = [
            (each["action"], each["target_message_id"], each["message_count"], each["at"])
            for each in store.list_rewinds("s")
        ]
        assert trail == [("rewind", found[2], 4, NOW), ("restore", found[4], 2, NOW + 5)]

    def test_restore_of_nothing_leaves_no_audit_entry(self, store: SessionDBProvider, found: list[int]) -> None:
        store.restore_rewound("s", found[0])
        assert store.list_rewinds("s") == []

    def test_audit_trail_of_an_unknown_session_is_empty(self, store: SessionDBProvider) -> None:
        assert store.list_rewinds("missing") == []


class TestRecentUserMessages:
    def test_recent_user_messages_come_newest_first(self, store: SessionDBProvider, found: list[int]) -> None:
        assert ids(store.list_recent_user_messages("s")) == [found[4], found[2], found[0]]

    def test_recent_user_messages_have_id_time_and_preview(self, store: SessionDBProvider, found: list[int]) -> None:
        newest = store.list_recent_user_messages("s", limit=1)
        assert newest == [{"id": found[4], "timestamp": NOW, "preview": "question 2"}]

    def test_recent_user_messages_leave_undone_ones_out(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[2])
        assert ids(store.list_recent_user_messages("s")) == [found[0]]

    def test_recent_user_messages_show_undone_ones_on_request(self, store: SessionDBProvider, found: list[int]) -> None:
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
    def test_preview_of_a_user_message_is_one_line(
        self, store: SessionDBProvider, content: object, preview: str
    ) -> None:
        start(store, "s")
        say(store, "s", content)
        assert column(store.list_recent_user_messages("s"), "preview") == [preview]

    def test_recent_user_messages_of_an_unknown_session_are_none(self, store: SessionDBProvider) -> None:
        assert store.list_recent_user_messages("missing") == []


class TestTogether:
    def test_counters_stay_correct_while_others_write_undo_and_restore(self, store: SessionDBProvider) -> None:
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
