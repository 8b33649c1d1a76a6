"""Lists: each conversation once, newest first, filtered and counted."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import column, compress, ids, say, start, start_apart, talk


class TestOrder:
    def test_newest_start_comes_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "a", "b", "c")
        assert ids(store.list_sessions_rich()) == ["c", "b", "a"]

    def test_activity_does_not_change_the_default_order(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "a", "b")
        clock.advance(1)
        say(store, "a", "x")
        assert ids(store.list_sessions_rich()) == ["b", "a"]

    def test_latest_activity_comes_first_on_request(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "a", "b", "c")
        clock.advance(1)
        say(store, "a", "x")
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["a", "c", "b"]

    @pytest.mark.parametrize("by_activity", [False, True])
    def test_equal_times_have_a_stable_order(self, store: SessionDBProvider, by_activity: bool) -> None:
        start(store, "b", "a", "c")
        assert ids(store.list_sessions_rich(order_by_last_active=by_activity)) == ["c", "b", "a"]

    def test_old_conversation_with_a_fresh_tip_comes_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "root", "other")
        compress(store, clock, "root", "tip")
        clock.advance(1)
        say(store, "tip", "x")
        assert ids(store.list_sessions_rich(order_by_last_active=True, limit=1)) == ["tip"]

    def test_deleting_the_tip_takes_its_activity_out_of_the_order(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start_apart(store, clock, "root", "other")
        compress(store, clock, "root", "tip")
        say(store, "tip", "x")
        store.delete_session("tip")
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["other", "root"]

    def test_clearing_the_tip_takes_its_activity_out_of_the_order(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        start_apart(store, clock, "other")
        clock.advance(1)
        say(store, "tip", "x")
        store.clear_messages("tip")
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["other", "tip"]


class TestRow:
    def test_last_activity_is_the_start_of_an_empty_session(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert column(store.list_sessions_rich(), "last_active") == [NOW]

    def test_last_activity_is_the_newest_message(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        clock.advance(5)
        say(store, "s", "x", role="tool")
        assert column(store.list_sessions_rich(), "last_active") == [NOW + 5]

    def test_last_activity_is_the_newest_time_not_the_latest_stored(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", timestamp=NOW + 50)
        store.append_message("s", "user", "y", timestamp=NOW + 20)
        assert column(store.list_sessions_rich(), "last_active") == [NOW + 50]

    def test_last_activity_of_imported_history_is_before_the_start(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", timestamp=500.0)
        assert column(store.list_sessions_rich(), "last_active") == [500.0]

    @pytest.mark.parametrize(
        ("messages", "preview"),
        [
            ([], ""),
            ([("user", "hello")], "hello"),
            ([("assistant", "first"), ("user", "second")], "second"),
            ([("user", "first"), ("user", "second")], "first"),
            ([("user", None), ("user", "second")], "second"),
            ([("user", ""), ("user", "second")], ""),
            ([("user", "a\nb\r\nc")], "a b  c"),
            ([("user", "  padded  ")], "padded"),
            ([("user", "x" * 60)], "x" * 60),
            ([("user", "x" * 61)], "x" * 60 + "..."),
            ([("user", "世" * 70)], "世" * 60 + "..."),
            ([("user", [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}])], "look"),
            ([("user", [{"type": "image_url", "image_url": {}}])], "[multimodal content]"),
        ],
    )
    def test_preview_is_the_first_user_text_on_one_line(
        self, store: SessionDBProvider, messages: list[tuple[str, Any]], preview: str
    ) -> None:
        start(store, "s")
        for role, content in messages:
            store.append_message("s", role, content)
        assert column(store.list_sessions_rich(), "preview") == [preview]

    def test_row_has_the_columns_of_the_session(self, store: SessionDBProvider) -> None:
        start(store, "s", model="m", cwd="/srv")
        (row,) = store.list_sessions_rich()
        assert (row["source"], row["model"], row["cwd"], row["message_count"]) == ("cli", "m", "/srv", 0)


class TestFilters:
    @pytest.fixture
    def mixed(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        start_apart(store, clock, "cli", source="cli")
        start_apart(store, clock, "telegram", source="telegram", user_id="1")
        start_apart(store, clock, "discord", source="discord", user_id="1")
        talk(store, "telegram", 1)
        talk(store, "discord", 2)
        store.set_session_archived("discord")
        return store

    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            ({}, ["telegram", "cli"]),
            ({"include_archived": True}, ["discord", "telegram", "cli"]),
            ({"archived_only": True}, ["discord"]),
            ({"archived_only": True, "include_archived": True}, ["discord"]),
            ({"source": "telegram"}, ["telegram"]),
            ({"source": "Telegram"}, []),
            ({"exclude_sources": ["cli", "nothing"]}, ["telegram"]),
            ({"exclude_sources": []}, ["telegram", "cli"]),
            ({"source": "cli", "exclude_sources": ["cli"]}, []),
            ({"min_message_count": 1}, ["telegram"]),
            ({"min_message_count": 3, "include_archived": True}, ["discord"]),
            ({"owner": "telegram:1"}, ["telegram"]),
            ({"owner": "telegram:2"}, []),
        ],
    )
    @pytest.mark.parametrize("by_activity", [False, True])
    def test_filter_lists_the_matching_sessions(
        self, mixed: SessionDBProvider, filters: dict[str, Any], found: list[str], by_activity: bool
    ) -> None:
        assert ids(mixed.list_sessions_rich(**filters, order_by_last_active=by_activity)) == found

    @pytest.mark.parametrize(
        "filters",
        [
            {},
            {"include_archived": True},
            {"archived_only": True},
            {"source": "telegram"},
            {"exclude_sources": ["cli"]},
            {"min_message_count": 1},
            {"owner": "telegram:1"},
        ],
    )
    def test_count_agrees_with_the_filtered_list(self, mixed: SessionDBProvider, filters: dict[str, Any]) -> None:
        listed = mixed.list_sessions_rich(**filters, limit=-1)
        assert mixed.session_count(**filters, exclude_children=True) == len(listed)

    def test_unarchived_session_is_listed_again(self, mixed: SessionDBProvider) -> None:
        mixed.set_session_archived("discord", False)
        assert ids(mixed.list_sessions_rich()) == ["discord", "telegram", "cli"]


class TestSince:
    @pytest.mark.parametrize("by_activity", [True, False])
    def test_since_filter_leaves_out_idle_sessions(
        self, store: SessionDBProvider, clock: FakeClock, by_activity: bool
    ) -> None:
        start_apart(store, clock, "older", "old")
        moment = clock.advance(10)
        start_apart(store, clock, "new")
        clock.advance(1)
        say(store, "old", "again")
        assert ids(store.list_sessions_rich(order_by_last_active=by_activity, active_since=moment)) == (
            ["old", "new"] if by_activity else ["new", "old"]
        )
        assert store.session_count(active_since=moment) == 2
        assert store.session_count(active_since=clock() + 1) == 0


class TestCount:
    def test_count_includes_children(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        assert (store.session_count(), store.session_count(exclude_children=True)) == (2, 1)

    def test_count_leaves_out_archived_sessions(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        store.set_session_archived("a")
        counted = [
            store.session_count(),
            store.session_count(include_archived=True),
            store.session_count(archived_only=True),
        ]
        assert counted == [1, 2, 1]

    def test_count_by_source_has_the_largest_first(self, store: SessionDBProvider) -> None:
        start(store, "a")
        start(store, "b", "c", source="telegram")
        assert list(store.count_by_source().items()) == [("telegram", 2), ("cli", 1)]

    def test_count_of_an_empty_store_is_zero(self, store: SessionDBProvider) -> None:
        assert (store.session_count(), store.count_by_source()) == (0, {})
