"""Sessions are found by id or prefix, and their relatives by lineage."""

from __future__ import annotations

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import compress, ids, say, start


class TestResolveId:
    @pytest.fixture
    def similar_ids(self, store: SessionDBProvider) -> SessionDBProvider:
        start(store, "20260101_120000_aaaa", "20260101_120000_aabb", "20260202_120000_cccc", "a%b", "axb2", "Ünï")
        return store

    @pytest.mark.parametrize(
        ("asked", "found"),
        [
            ("20260101_120000_aaaa", "20260101_120000_aaaa"),
            ("20260202", "20260202_120000_cccc"),
            ("20260101_120000_aab", "20260101_120000_aabb"),
            ("a%b", "a%b"),
            ("a%", "a%b"),
            ("ax", "axb2"),
            ("Ün", "Ünï"),
            ("20260101", None),
            ("2026010_", None),
            ("%", None),
            ("A", None),
            ("AXB", None),
            ("120000", None),
            ("missing", None),
            ("", None),
        ],
    )
    def test_id_or_unique_prefix_is_resolved(
        self, similar_ids: SessionDBProvider, asked: str, found: str | None
    ) -> None:
        assert similar_ids.resolve_session_id(asked) == found

    def test_exact_id_beats_longer_ones(self, store: SessionDBProvider) -> None:
        start(store, "abc", "abcd", "abcde")
        assert store.resolve_session_id("abc") == "abc"

    def test_empty_id_is_none_even_if_there_is_one_session(self, store: SessionDBProvider) -> None:
        start(store, "only")
        assert store.resolve_session_id("") is None


class TestCompressionTip:
    def test_compression_tip_of_a_chain_is_its_last_session(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "a")
        compress(store, clock, "a", "b")
        compress(store, clock, "b", "c")
        assert [store.get_compression_tip(each) for each in "abc"] == ["c", "c", "c"]

    @pytest.mark.parametrize("kind", ["branch", "delegate", "reset", "import", None])
    def test_compression_tip_ignores_other_children(self, store: SessionDBProvider, kind: str | None) -> None:
        start(store, "parent")
        start(store, "child", parent_session_id="parent", child_kind=kind)
        assert store.get_compression_tip("parent") == "parent"

    def test_compression_tip_ignores_a_delegate_of_a_compressed_session(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        clock.advance(1)
        start(store, "helper", parent_session_id="root", child_kind="delegate")
        assert store.get_compression_tip("root") == "tip"

    def test_compression_tip_of_two_continuations_is_the_later_one(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        compress(store, clock, "root", "z-first")
        compress(store, clock, "root", "a-second")
        assert store.get_compression_tip("root") == "a-second"

    def test_compression_tip_of_an_unknown_session_is_itself(self, store: SessionDBProvider) -> None:
        assert store.get_compression_tip("missing") == "missing"

    def test_reopened_root_keeps_its_tip(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        store.reopen_session("root")
        assert store.get_compression_tip("root") == "tip"

    def test_reopened_root_is_listed_as_its_tip(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        store.reopen_session("root")
        assert ids(store.list_sessions_rich()) == ["tip"]

    def test_compression_tip_of_a_very_long_chain_is_the_one_that_the_list_shows(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "link 0")
        for number in range(120):
            compress(store, clock, f"link {number}", f"link {number + 1}")
        assert ids(store.list_sessions_rich()) == [store.get_compression_tip("link 0")] == ["link 120"]


class TestResume:
    def test_session_with_messages_is_resumed_itself(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        say(store, "root", "x")
        compress(store, clock, "root", "tip")
        assert store.resolve_resume_session_id("root") == "root"

    def test_session_whose_messages_are_all_undone_is_resumed_itself(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        store.rewind_to_message("root", say(store, "root", "x")[0])
        say(store, compress(store, clock, "root", "tip"), "y")
        assert store.resolve_resume_session_id("root") == "root"

    def test_empty_session_is_resumed_at_its_nearest_descendant_with_messages(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        compress(store, clock, "root", "empty")
        say(store, compress(store, clock, "empty", "full"), "x")
        assert store.resolve_resume_session_id("root") == "full"

    def test_empty_session_without_descendants_is_resumed_itself(self, store: SessionDBProvider) -> None:
        start(store, "root")
        assert store.resolve_resume_session_id("root") == "root"

    def test_empty_family_is_resumed_at_the_requested_session(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        compress(store, clock, "root", "empty")
        assert store.resolve_resume_session_id("root") == "root"

    def test_resume_never_lands_in_a_delegate(self, store: SessionDBProvider) -> None:
        start(store, "root")
        start(store, "helper", parent_session_id="root", child_kind="delegate")
        say(store, "helper", "x")
        assert store.resolve_resume_session_id("root") == "root"

    @pytest.mark.parametrize("asked", ["", "missing"])
    def test_resume_returns_an_unknown_id_unchanged(self, store: SessionDBProvider, asked: str) -> None:
        assert store.resolve_resume_session_id(asked) == asked


class TestRelatives:
    @pytest.fixture
    def family(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        start(store, "grandmother")
        for parent, child in (("grandmother", "mother"), ("grandmother", "aunt"), ("mother", "me"), ("aunt", "cousin")):
            clock.advance(1)
            start(store, child, parent_session_id=parent, child_kind="branch")
        start(store, "stranger")
        return store

    def test_ancestors_go_up_to_the_root(self, family: SessionDBProvider) -> None:
        assert ids(family.get_ancestors("me")) == ["me", "mother", "grandmother"]

    def test_descendants_come_by_generation(self, family: SessionDBProvider) -> None:
        assert ids(family.get_descendants("grandmother")) == ["grandmother", "mother", "aunt", "me", "cousin"]

    def test_ancestors_have_the_documented_columns(self, family: SessionDBProvider) -> None:
        assert list(family.get_ancestors("me")[0]) == ["id", "title", "started_at", "parent_session_id"]

    def test_descendants_have_the_documented_columns(self, family: SessionDBProvider) -> None:
        assert list(family.get_descendants("me")[0]) == ["id", "title", "started_at"]

    def test_a_single_session_is_its_own_family(self, family: SessionDBProvider) -> None:
        assert ids(family.get_ancestors("stranger")) == ids(family.get_descendants("stranger")) == ["stranger"]

    def test_unknown_session_has_no_relatives(self, family: SessionDBProvider) -> None:
        assert family.get_ancestors("missing") == family.get_descendants("missing") == []

    def test_line_of_two_hundred_is_complete(self, store: SessionDBProvider) -> None:
        start(store, "0")
        for number in range(1, 200):
            start(store, str(number), parent_session_id=str(number - 1), child_kind="branch")
        assert len(store.get_ancestors("199")) == len(store.get_descendants("0")) == 200
