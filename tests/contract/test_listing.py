"""Lists: each conversation once, newest first, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import Row, column, compress, ids, say, start, talk


def start_apart(store: SessionDBProvider, clock: FakeClock, *session_ids: str, **fields: Any) -> None:
    """Create sessions a second apart."""
    for session_id in session_ids:
        clock.advance(1)
        start(store, session_id, **fields)


def all_pages(store: SessionDBProvider, size: int, **filters: Any) -> list[Row]:
    """Every row of a list, fetched page by page with cursors."""
    rows: list[Row] = []
    after = None
    while page := store.list_sessions_rich(limit=size, after=after, **filters):
        assert len(page) <= size
        rows += page
        after = page[-1]["cursor"]
    return rows


class TestOrder:
    def test_newest_start_comes_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "a", "b", "c")
        assert ids(store.list_sessions_rich()) == ["c", "b", "a"]

    def test_activity_does_not_change_the_default_order(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "a", "b")
        clock.advance(1)
        say(store, "a", "x")
        assert ids(store.list_sessions_rich()) == ["b", "a"]

    def test_latest_activity_comes_first_when_asked(self, store: SessionDBProvider, clock: FakeClock) -> None:
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
    def test_preview(self, store: SessionDBProvider, messages: list[tuple[str, Any]], preview: str) -> None:
        start(store, "s")
        for role, content in messages:
            store.append_message("s", role, content)
        assert column(store.list_sessions_rich(), "preview") == [preview]

    def test_has_the_columns_of_the_session(self, store: SessionDBProvider) -> None:
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
    def test_example(
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
    def test_count_agrees_with_the_list(self, mixed: SessionDBProvider, filters: dict[str, Any]) -> None:
        listed = mixed.list_sessions_rich(**filters, limit=-1)
        assert mixed.session_count(**filters, exclude_children=True) == len(listed)

    def test_unarchived_session_is_back(self, mixed: SessionDBProvider) -> None:
        mixed.set_session_archived("discord", False)
        assert ids(mixed.list_sessions_rich()) == ["discord", "telegram", "cli"]


class TestCount:
    def test_includes_children(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        assert (store.session_count(), store.session_count(exclude_children=True)) == (2, 1)

    def test_leaves_archived_out(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        store.set_session_archived("a")
        counted = [
            store.session_count(),
            store.session_count(include_archived=True),
            store.session_count(archived_only=True),
        ]
        assert counted == [1, 2, 1]

    def test_by_source_has_the_largest_first(self, store: SessionDBProvider) -> None:
        start(store, "a")
        start(store, "b", "c", source="telegram")
        assert list(store.count_by_source().items()) == [("telegram", 2), ("cli", 1)]

    def test_of_an_empty_store_is_zero(self, store: SessionDBProvider) -> None:
        assert (store.session_count(), store.count_by_source()) == (0, {})


class TestChildren:
    @pytest.mark.parametrize(
        ("kind", "listed"),
        [
            ("branch", True),
            ("reset", True),
            ("import", True),
            ("compression", False),
            ("delegate", False),
            (None, False),
        ],
    )
    def test_are_listed_by_kind(self, store: SessionDBProvider, kind: str | None, listed: bool) -> None:
        start(store, "parent")
        start(store, "child", parent_session_id="parent", child_kind=kind)
        rows = store.list_sessions_rich(project_compression_tips=False)
        assert ("child" in ids(rows)) == listed

    def test_are_all_listed_when_asked_for(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "parent")
        start_apart(store, clock, "delegate", parent_session_id="parent", child_kind="delegate")
        start_apart(store, clock, "other", parent_session_id="parent")
        assert ids(store.list_sessions_rich(include_children=True)) == ["other", "delegate", "parent"]

    def test_delegate_without_parent_stays_hidden(self, store: SessionDBProvider) -> None:
        start(store, "helper", child_kind="delegate")
        assert store.list_sessions_rich() == []


class TestChains:
    @pytest.fixture
    def chain(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        start(store, "root", model="old model", system_prompt="old prompt", cwd="/old")
        say(store, "root", "root preview")
        store.update_token_counts("root", input_tokens=7)
        store.set_session_title("root", "Docker")
        compress(store, clock, "root", "middle")
        compress(store, clock, "middle", "tip", model="new model", system_prompt="new prompt", cwd="/new")
        talk(store, "tip", 2)
        store.set_session_title("tip", "Docker #3")
        return store

    def test_are_one_row(self, chain: SessionDBProvider) -> None:
        assert ids(chain.list_sessions_rich()) == ["tip"]

    def test_row_names_its_root(self, chain: SessionDBProvider) -> None:
        assert chain.list_sessions_rich()[0]["_lineage_root_id"] == "root"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("title", "Docker #3"),
            ("preview", "question 0"),
            ("message_count", 4),
            ("model", "new model"),
            ("system_prompt", "new prompt"),
            ("cwd", "/new"),
            ("end_reason", None),
            ("last_active", NOW + 2),
        ],
    )
    def test_row_shows_what_the_tip_is(self, chain: SessionDBProvider, name: str, value: object) -> None:
        assert column(chain.list_sessions_rich(), name) == [value]

    @pytest.mark.parametrize(("name", "value"), [("started_at", NOW), ("input_tokens", 7), ("parent_session_id", None)])
    def test_row_keeps_what_the_root_was(self, chain: SessionDBProvider, name: str, value: object) -> None:
        assert column(chain.list_sessions_rich(), name) == [value]

    def test_are_shown_as_roots_when_not_projected(self, chain: SessionDBProvider) -> None:
        (row,) = chain.list_sessions_rich(project_compression_tips=False)
        assert (row["id"], "_lineage_root_id" in row) == ("root", False)

    def test_are_shown_link_by_link_with_children(self, chain: SessionDBProvider) -> None:
        assert ids(chain.list_sessions_rich(include_children=True)) == ["tip", "middle", "root"]

    def test_session_that_ended_by_compression_without_heir_is_shown_raw(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.end_session("s", "compression")
        (row,) = store.list_sessions_rich()
        assert (row["id"], "_lineage_root_id" in row) == ("s", False)

    def test_are_archived_as_one(self, chain: SessionDBProvider) -> None:
        chain.set_session_archived("tip")
        assert (chain.list_sessions_rich(), ids(chain.list_sessions_rich(archived_only=True))) == ([], ["tip"])


class TestPages:
    @pytest.fixture
    def many(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        """13 conversations, several of which share their times, some compressed, some archived."""
        for number in range(13):
            if number % 3 == 0:
                clock.advance(1)
            start(store, f"s{number:02}", source=("cli", "telegram")[number % 2])
            if number % 5 == 0:
                compress(store, clock, f"s{number:02}", f"t{number:02}")
            if number % 4 == 0:
                say(store, f"s{number:02}", "x")
            if number % 6 == 0:
                store.set_session_archived(f"s{number:02}")
        return store

    @pytest.mark.parametrize("size", [1, 5])
    @pytest.mark.parametrize("by_activity", [False, True])
    @pytest.mark.parametrize(
        "filters",
        [{}, {"include_archived": True}, {"include_children": True}, {"source": "cli"}, {"archived_only": True}],
    )
    def test_by_cursor_make_up_the_whole(
        self, many: SessionDBProvider, size: int, by_activity: bool, filters: dict[str, Any]
    ) -> None:
        whole = many.list_sessions_rich(limit=-1, order_by_last_active=by_activity, **filters)
        assert all_pages(many, size, order_by_last_active=by_activity, **filters) == whole

    @pytest.mark.parametrize("by_activity", [False, True])
    def test_by_offset_make_up_the_whole(self, many: SessionDBProvider, by_activity: bool) -> None:
        whole = many.list_sessions_rich(limit=-1, order_by_last_active=by_activity)
        pages = [
            row
            for offset in range(0, 16, 4)
            for row in many.list_sessions_rich(limit=4, offset=offset, order_by_last_active=by_activity)
        ]
        assert pages == whole

    def test_have_twenty_rows_by_default(self, store: SessionDBProvider) -> None:
        start(store, *(f"s{number}" for number in range(21)))
        assert len(store.list_sessions_rich()) == 20

    def test_of_size_zero_are_empty(self, many: SessionDBProvider) -> None:
        assert many.list_sessions_rich(limit=0) == []

    def test_behind_the_end_are_empty(self, many: SessionDBProvider) -> None:
        assert many.list_sessions_rich(offset=1000) == []

    def test_neither_repeat_nor_skip_when_sessions_are_added(self, many: SessionDBProvider, clock: FakeClock) -> None:
        whole = ids(many.list_sessions_rich(limit=-1))
        first = many.list_sessions_rich(limit=5)
        start_apart(many, clock, "new1", "new2", "new3")
        rest = many.list_sessions_rich(limit=-1, after=first[-1]["cursor"])
        assert ids(first) + ids(rest) == whole

    def test_go_on_when_the_row_of_the_cursor_is_gone(self, many: SessionDBProvider) -> None:
        whole = ids(many.list_sessions_rich(limit=-1))
        first = many.list_sessions_rich(limit=5)
        many.delete_session(first[-1]["id"])
        assert ids(many.list_sessions_rich(limit=-1, after=first[-1]["cursor"])) == whole[5:]

    @pytest.mark.parametrize("cursor", ["", "x", "[]", "[1]", '["a", "b"]', "{}", "null"])
    def test_refuse_what_is_no_cursor(self, many: SessionDBProvider, cursor: str) -> None:
        with pytest.raises(InvalidValue, match="cursor"):
            many.list_sessions_rich(after=cursor)

    def test_refuse_the_cursor_of_another_order(self, many: SessionDBProvider) -> None:
        cursor = many.list_sessions_rich(limit=1)[0]["cursor"]
        with pytest.raises(InvalidValue, match="cursor"):
            many.list_sessions_rich(after=cursor, order_by_last_active=True)


class TestIdQuery:
    @pytest.fixture
    def chain(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        start_apart(store, clock, "Root_1", "other")
        compress(store, clock, "Root_1", "tip_22")
        return store

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("root", ["tip_22"]),
            ("ROOT_1", ["tip_22"]),
            ("_22", ["tip_22"]),
            (" tip ", ["tip_22"]),
            ("othe", ["other"]),
            ("t", ["tip_22", "other"]),
            ("_", ["tip_22"]),
            ("%", []),
            ("!", []),
            ("", ["tip_22", "other"]),
        ],
    )
    def test_matches_any_link_of_a_chain(self, chain: SessionDBProvider, query: str, found: list[str]) -> None:
        assert ids(chain.list_sessions_rich(id_query=query, order_by_last_active=True)) == found

    def test_counts_in_every_order(self, chain: SessionDBProvider) -> None:
        assert ids(chain.list_sessions_rich(id_query="tip")) == ["tip_22"]


class TestSearchById:
    def test_equal_comes_before_prefix_before_substring(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "abc", "abcd", "xabc")
        assert ids(store.search_sessions_by_id("ABC")) == ["abc", "abcd", "xabc"]

    def test_equal_root_counts_as_equal(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "abc")
        compress(store, clock, "abc", "tip")
        start_apart(store, clock, "abcd")
        assert ids(store.search_sessions_by_id("abc")) == ["tip", "abcd"]

    def test_equal_comes_first_however_old_it_is(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "abc", *(f"x{n}-abc" for n in range(10)))
        assert ids(store.search_sessions_by_id("abc", limit=1)) == ["abc"]

    def test_finds_archived_sessions(self, store: SessionDBProvider) -> None:
        start(store, "abc")
        store.set_session_archived("abc")
        assert ids(store.search_sessions_by_id("abc")) == ["abc"]

    def test_can_leave_archived_sessions_out(self, store: SessionDBProvider) -> None:
        start(store, "abc")
        store.set_session_archived("abc")
        assert store.search_sessions_by_id("abc", include_archived=False) == []

    @pytest.mark.parametrize(("query", "limit"), [("", 20), ("  ", 20), ("abc", 0), ("abc", -1), ("nothing", 20)])
    def test_without_query_or_limit_finds_nothing(self, store: SessionDBProvider, query: str, limit: int) -> None:
        start(store, "abc")
        assert store.search_sessions_by_id(query, limit) == []


class TestSearchSessions:
    def test_has_every_session_latest_activity_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "root", "archived")
        store.set_session_archived("archived")
        compress(store, clock, "root", "tip")
        start_apart(store, clock, "helper", parent_session_id="tip", child_kind="delegate")
        clock.advance(1)
        say(store, "root", "x")
        assert ids(store.search_sessions()) == ["root", "helper", "tip", "archived"]

    def test_first_is_the_one_to_continue(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "a", "b", source="cli")
        start_apart(store, clock, "t", source="telegram")
        say(store, "a", "x")
        assert ids(store.search_sessions("cli", limit=1)) == ["a"]

    def test_pages_by_offset(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "a", "b", "c", "d")
        assert ids(store.search_sessions(limit=2, offset=1)) == ["c", "b"]

    def test_rows_have_the_last_activity(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert column(store.search_sessions(), "last_active") == [NOW]


class TestCronRuns:
    @pytest.fixture
    def runs(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        for session_id in (
            "cron_job_20260101_000000",
            "cron_job_20260102_000000",
            "cron_job_two_20260101_000000",
            "cron_jobs_20260101_000000",
            "xcron_job_20260101_000000",
            "CRON_JOB_20260101_000000",
        ):
            start_apart(store, clock, session_id, source="cron")
        start(store, "cron_job_20260103_000000", source="cli")
        return store

    def test_are_those_of_one_job_newest_first(self, runs: SessionDBProvider) -> None:
        assert ids(runs.list_cron_job_runs("job")) == ["cron_job_20260102_000000", "cron_job_20260101_000000"]

    def test_of_a_job_with_a_longer_name_are_its_own(self, runs: SessionDBProvider) -> None:
        assert ids(runs.list_cron_job_runs("job_two")) == ["cron_job_two_20260101_000000"]

    @pytest.mark.parametrize("job", ["jo", "nothing", "j%b", "j_b"])
    def test_of_another_name_are_none(self, runs: SessionDBProvider, job: str) -> None:
        assert runs.list_cron_job_runs(job) == []

    def test_can_be_paged(self, runs: SessionDBProvider) -> None:
        assert ids(runs.list_cron_job_runs("job", limit=1, offset=1)) == ["cron_job_20260101_000000"]

    def test_have_preview_and_activity(self, runs: SessionDBProvider) -> None:
        say(runs, "cron_job_20260102_000000", "tick")
        assert column(runs.list_cron_job_runs("job", limit=1), "preview") == ["tick"]


class TestSince:
    @pytest.mark.parametrize("by_activity", [True, False])
    def test_leaves_out_what_was_not_used_since(
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
