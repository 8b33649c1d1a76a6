"""Sessions are found by a part of their id, by their activity, and by their cron job."""

from __future__ import annotations

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import column, compress, ids, say, start, start_apart


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
    def test_id_query_matches_any_link_of_a_chain(self, chain: SessionDBProvider, query: str, found: list[str]) -> None:
        assert ids(chain.list_sessions_rich(id_query=query, order_by_last_active=True)) == found

    def test_id_query_works_in_every_order(self, chain: SessionDBProvider) -> None:
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

    def test_exact_match_comes_first_however_old_it_is(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "abc", *(f"x{n}-abc" for n in range(10)))
        assert ids(store.search_sessions_by_id("abc", limit=1)) == ["abc"]

    def test_search_by_id_finds_archived_sessions(self, store: SessionDBProvider) -> None:
        start(store, "abc")
        store.set_session_archived("abc")
        assert ids(store.search_sessions_by_id("abc")) == ["abc"]

    def test_search_by_id_can_leave_archived_sessions_out(self, store: SessionDBProvider) -> None:
        start(store, "abc")
        store.set_session_archived("abc")
        assert store.search_sessions_by_id("abc", include_archived=False) == []

    @pytest.mark.parametrize(("query", "limit"), [("", 20), ("  ", 20), ("abc", 0), ("nothing", 20)])
    def test_search_by_id_without_query_or_limit_finds_nothing(
        self, store: SessionDBProvider, query: str, limit: int
    ) -> None:
        start(store, "abc")
        assert store.search_sessions_by_id(query, limit) == []


class TestSearchSessions:
    def test_search_sessions_has_every_session_latest_activity_first(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start_apart(store, clock, "root", "archived")
        store.set_session_archived("archived")
        compress(store, clock, "root", "tip")
        start_apart(store, clock, "helper", parent_session_id="tip", child_kind="delegate")
        clock.advance(1)
        say(store, "root", "x")
        assert ids(store.search_sessions()) == ["root", "helper", "tip", "archived"]

    def test_first_session_is_the_one_to_continue(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_apart(store, clock, "a", "b", source="cli")
        start_apart(store, clock, "t", source="telegram")
        say(store, "a", "x")
        assert ids(store.search_sessions("cli", limit=1)) == ["a"]

    def test_search_sessions_pages_by_offset(self, store: SessionDBProvider, clock: FakeClock) -> None:
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

    def test_cron_runs_are_those_of_one_job_newest_first(self, runs: SessionDBProvider) -> None:
        assert ids(runs.list_cron_job_runs("job")) == ["cron_job_20260102_000000", "cron_job_20260101_000000"]

    def test_cron_runs_of_a_job_with_a_longer_name_are_its_own(self, runs: SessionDBProvider) -> None:
        assert ids(runs.list_cron_job_runs("job_two")) == ["cron_job_two_20260101_000000"]

    @pytest.mark.parametrize("job", ["jo", "nothing", "j%b", "j_b"])
    def test_cron_runs_of_another_name_are_none(self, runs: SessionDBProvider, job: str) -> None:
        assert runs.list_cron_job_runs(job) == []

    def test_cron_runs_can_be_paged(self, runs: SessionDBProvider) -> None:
        assert ids(runs.list_cron_job_runs("job", limit=1, offset=1)) == ["cron_job_20260101_000000"]

    def test_cron_runs_have_preview_and_activity(self, runs: SessionDBProvider) -> None:
        say(runs, "cron_job_20260102_000000", "tick")
        assert column(runs.list_cron_job_runs("job", limit=1), "preview") == ["tick"]
