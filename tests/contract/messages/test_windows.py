"""The messages around one, and the first and last of the session."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import contents, ids, say, start, talk


@pytest.fixture
def found(store: SessionDBProvider) -> list[int]:
    """Return the ids of ten turns in session `s`, with those of another session in between."""
    start(store, "s", "other")
    own = []
    for _ in range(10):
        own += talk(store, "s", 1)
        talk(store, "other", 1)
    return own


class TestAround:
    def test_window_shows_the_anchor_and_both_sides(self, store: SessionDBProvider, found: list[int]) -> None:
        assert ids(store.get_messages_around("s", found[9], window=2)["window"]) == found[7:12]

    def test_window_shows_five_on_each_side_by_default(self, store: SessionDBProvider, found: list[int]) -> None:
        assert ids(store.get_messages_around("s", found[9])["window"]) == found[4:15]

    def test_window_counts_the_shown_messages(self, store: SessionDBProvider, found: list[int]) -> None:
        view = store.get_messages_around("s", found[9], window=2)
        assert (view["messages_before"], view["messages_after"]) == (2, 2)

    def test_smaller_count_means_the_start_of_the_session(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.get_messages_around("s", found[1], window=5)["messages_before"] == 1

    def test_smaller_count_means_the_end_of_the_session(self, store: SessionDBProvider, found: list[int]) -> None:
        assert store.get_messages_around("s", found[-2], window=5)["messages_after"] == 1

    @pytest.mark.parametrize("window", [0, -3])
    def test_window_of_zero_is_the_anchor_alone(self, store: SessionDBProvider, found: list[int], window: int) -> None:
        assert ids(store.get_messages_around("s", found[9], window=window)["window"]) == [found[9]]

    @pytest.mark.parametrize("session_id", ["other", "missing"])
    def test_anchor_of_another_session_shows_nothing(
        self, store: SessionDBProvider, found: list[int], session_id: str
    ) -> None:
        view = store.get_messages_around(session_id, found[9])
        assert view == {"window": [], "messages_before": 0, "messages_after": 0}

    def test_undone_messages_are_left_out_of_a_window(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[10])
        view = store.get_messages_around("s", found[9], window=1)
        assert (ids(view["window"]), view["messages_after"]) == (found[8:10], 0)

    def test_there_is_no_window_around_an_undone_message(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[10])
        assert store.get_messages_around("s", found[12]) == {"window": [], "messages_before": 0, "messages_after": 0}

    def test_undone_messages_are_shown_in_a_window_on_request(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[10])
        view = store.get_messages_around("s", found[10], window=1, include_inactive=True)
        assert ids(view["window"]) == found[9:12]

    def test_anchored_view_leaves_undone_messages_out(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[12])
        view = store.get_anchored_view("s", found[8], window=2, bookend=3)
        shown = [*view["bookend_start"], *view["window"], *view["bookend_end"]]
        assert [message["id"] for message in shown if not message["active"]] == []
        assert ids(view["bookend_end"]) == found[11:12]

    def test_anchored_view_shows_undone_messages_on_request(self, store: SessionDBProvider, found: list[int]) -> None:
        store.rewind_to_message("s", found[12])
        view = store.get_anchored_view("s", found[8], window=2, bookend=3, include_inactive=True)
        assert ids(view["bookend_end"]) == found[-3:]

    def test_structured_content_in_a_window_is_decoded(self, store: SessionDBProvider) -> None:
        start(store, "s")
        parts = [{"type": "text", "text": "x"}]
        (anchor,) = say(store, "s", parts)
        assert contents(store.get_messages_around("s", anchor)["window"]) == [parts]


class TestAnchoredView:
    def test_anchored_view_has_window_and_bookends(self, store: SessionDBProvider, found: list[int]) -> None:
        view = store.get_anchored_view("s", found[9], window=2, bookend=2)
        assert (ids(view["bookend_start"]), ids(view["window"]), ids(view["bookend_end"])) == (
            found[:2],
            found[7:12],
            found[-2:],
        )

    def test_bookends_never_repeat_the_window(self, store: SessionDBProvider, found: list[int]) -> None:
        view = store.get_anchored_view("s", found[1], window=5, bookend=3)
        assert ids(view["bookend_start"]) == []

    def test_bookends_stop_at_the_window(self, store: SessionDBProvider, found: list[int]) -> None:
        view = store.get_anchored_view("s", found[6], window=5, bookend=3)
        assert ids(view["bookend_start"]) == found[:1]

    @pytest.mark.parametrize("bookend", [0, -1])
    def test_bookend_of_zero_gives_no_messages(self, store: SessionDBProvider, found: list[int], bookend: int) -> None:
        view = store.get_anchored_view("s", found[9], bookend=bookend)
        assert (view["bookend_start"], view["bookend_end"]) == ([], [])

    def test_unknown_anchor_shows_nothing(self, store: SessionDBProvider) -> None:
        assert store.get_anchored_view("missing", 1) == {
            "window": [],
            "messages_before": 0,
            "messages_after": 0,
            "bookend_start": [],
            "bookend_end": [],
        }


class TestRoles:
    @pytest.fixture
    def mixed(self, store: SessionDBProvider) -> list[int]:
        start(store, "s")
        roles = ["system", "user", "tool", "assistant", "tool", "user", "tool", "assistant", "tool", "user", "tool"]
        return [store.append_message("s", role, f"{role} {n}") for n, role in enumerate(roles)]

    def test_other_roles_are_left_out_of_the_window(self, store: SessionDBProvider, mixed: list[int]) -> None:
        view = store.get_anchored_view("s", mixed[5], window=2, bookend=0)
        assert contents(view["window"]) == ["assistant 3", "user 5", "assistant 7"]

    def test_window_counts_are_those_before_the_role_filter(self, store: SessionDBProvider, mixed: list[int]) -> None:
        view = store.get_anchored_view("s", mixed[5], window=2, bookend=0)
        assert (view["messages_before"], view["messages_after"]) == (2, 2)

    def test_window_always_has_its_anchor(self, store: SessionDBProvider, mixed: list[int]) -> None:
        view = store.get_anchored_view("s", mixed[4], window=1, bookend=0)
        assert contents(view["window"]) == ["assistant 3", "tool 4", "user 5"]

    def test_no_role_filter_keeps_all_roles(self, store: SessionDBProvider, mixed: list[int]) -> None:
        view = store.get_anchored_view("s", mixed[5], window=1, bookend=1, keep_roles=None)
        assert contents([*view["bookend_start"], *view["window"], *view["bookend_end"]]) == [
            "system 0",
            "tool 4",
            "user 5",
            "tool 6",
            "tool 10",
        ]

    def test_bookends_are_of_the_same_roles(self, store: SessionDBProvider, mixed: list[int]) -> None:
        view = store.get_anchored_view("s", mixed[5], window=1, bookend=1)
        assert contents([*view["bookend_start"], *view["bookend_end"]]) == ["user 1", "user 9"]

    @pytest.mark.parametrize("silence", [None, ""])
    def test_bookends_skip_empty_messages(self, store: SessionDBProvider, silence: str | None) -> None:
        start(store, "s")
        say(store, "s", silence, "first", "second", "anchor")
        anchor = say(store, "s", "anchor")[0]
        assert contents(store.get_anchored_view("s", anchor, window=0, bookend=1)["bookend_start"]) == ["first"]

    def test_bookends_show_multimodal_messages(self, store: SessionDBProvider) -> None:
        start(store, "s")
        picture: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": "x"}}]
        anchor = say(store, "s", picture, "anchor")[1]
        assert contents(store.get_anchored_view("s", anchor, window=0)["bookend_start"]) == [picture]
