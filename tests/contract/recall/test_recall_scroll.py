"""Scrolling: the messages around one that the agent chooses."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import column, compress, contents, ids, say, start
from tests.support.recall import NO_NUMBERS, error, recall


class TestScroll:
    @pytest.fixture
    def message_ids(self, store: SessionDBProvider) -> list[int]:
        start(store, "s", model="m")
        return store.append_messages("s", [{"role": "user", "content": f"message {number}"} for number in range(60)])

    def test_scroll_shows_the_messages_around_one(self, store: SessionDBProvider, message_ids: list[int]) -> None:
        response = recall(store, session_id="s", around_message_id=message_ids[10], window=2)
        assert ids(response["messages"]) == message_ids[8:13]
        assert column(response["messages"][2:3], "anchor") == [True]
        assert sum("anchor" in message for message in response["messages"]) == 1
        del response["messages"]
        assert response == {
            "success": True,
            "mode": "scroll",
            "session_id": "s",
            "around_message_id": message_ids[10],
            "session_meta": recall(store, session_id="s")["session_meta"],
            "window": 2,
            "messages_before": 2,
            "messages_after": 2,
        }

    def test_lower_count_means_an_end_of_the_session(self, store: SessionDBProvider, message_ids: list[int]) -> None:
        response = recall(store, session_id="s", around_message_id=message_ids[1], window=5)
        assert (response["messages_before"], response["messages_after"]) == (1, 5)

    @pytest.mark.parametrize(
        ("window", "taken"),
        [(0, 1), (-3, 1), (20, 20), (21, 20), (10**40, 20), ("7", 7), (2.9, 2), *((odd, 5) for odd in NO_NUMBERS)],
    )
    def test_window_is_from_1_to_20(
        self, store: SessionDBProvider, message_ids: list[int], window: Any, taken: int
    ) -> None:
        assert recall(store, session_id="s", around_message_id=message_ids[30], window=window)["window"] == taken

    def test_scroll_shows_all_roles(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message_ids = [store.append_message("s", role, role) for role in ("system", "user", "tool", "assistant")]
        response = recall(store, session_id="s", around_message_id=message_ids[1])
        assert contents(response["messages"]) == ["system", "user", "tool", "assistant"]

    @pytest.mark.parametrize("written", [str, float])
    def test_scroll_accepts_an_id_as_number_or_text(
        self, store: SessionDBProvider, message_ids: list[int], written: type
    ) -> None:
        assert (
            recall(store, session_id="s", around_message_id=written(message_ids[0]))["around_message_id"]
            == message_ids[0]
        )

    def test_scroll_beats_a_query(self, store: SessionDBProvider, message_ids: list[int]) -> None:
        assert recall(store, session_id="s", around_message_id=message_ids[0], query="message")["mode"] == "scroll"

    def test_message_of_the_same_lineage_is_shown_where_it_is(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        compress(store, clock, "s", "s2")
        (message_id,) = say(store, "s2", "here")
        response = recall(store, session_id="s", around_message_id=message_id)
        assert (response["session_id"], contents(response["messages"])) == ("s2", ["here"])
        assert "s2" in response["warning"]

    def test_message_of_another_lineage_is_not_in_the_session(
        self, store: SessionDBProvider, message_ids: list[int]
    ) -> None:
        start(store, "other")
        assert "not in" in error(recall(store, session_id="other", around_message_id=message_ids[0]))

    @pytest.mark.parametrize("number", [0, -1, 999_999, 10**40, -(10**40)])
    def test_unknown_message_is_not_in_the_session(
        self, store: SessionDBProvider, message_ids: list[int], number: int
    ) -> None:
        assert "not in" in error(recall(store, session_id="s", around_message_id=number))

    def test_undone_messages_are_neither_shown_nor_valid_anchors(
        self, store: SessionDBProvider, message_ids: list[int]
    ) -> None:
        store.rewind_to_message("s", message_ids[10])
        assert (
            ids(recall(store, session_id="s", around_message_id=message_ids[9], window=1)["messages"])
            == message_ids[8:10]
        )
        assert "not in" in error(recall(store, session_id="s", around_message_id=message_ids[10]))

    @pytest.mark.parametrize("current", ["s", "branch", "root"])
    def test_scroll_refuses_the_current_lineage(self, store: SessionDBProvider, current: str) -> None:
        start(store, "root")
        start(store, "s", "branch", parent_session_id="root", child_kind="branch")
        (message_id,) = say(store, "s", "x")
        response = recall(store, session_id="s", around_message_id=message_id, current_session_id=current)
        assert "current session" in error(response)

    def test_scroll_in_an_unknown_session_is_an_error(self, store: SessionDBProvider, message_ids: list[int]) -> None:
        assert "there is no session 'missing'" in error(
            recall(store, session_id="missing", around_message_id=message_ids[0])
        )

    @pytest.mark.parametrize("anchor", ["x", "", True, False, [], {}, 1.5, float("nan")])
    def test_invalid_anchor_is_an_error(self, store: SessionDBProvider, message_ids: list[int], anchor: Any) -> None:
        assert "around_message_id" in error(recall(store, session_id="s", around_message_id=anchor))

    @pytest.mark.parametrize("blank", [None, "", "  "])
    def test_message_without_a_session_is_an_error(
        self, store: SessionDBProvider, message_ids: list[int], blank: str | None
    ) -> None:
        assert "session_id" in error(recall(store, session_id=blank, around_message_id=message_ids[0]))
