"""A child session has the kind that its caller gives, or the one that follows from its parent."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import ids, session_of, start


class TestChildKind:
    @pytest.mark.parametrize("kind", ["compression", "branch", "delegate", "reset", "import"])
    def test_given_kind_is_kept(self, store: SessionDBProvider, kind: str) -> None:
        start(store, "parent")
        start(store, "child", parent_session_id="parent", child_kind=kind)
        assert session_of(store, "child")["child_kind"] == kind

    @pytest.mark.parametrize(
        ("end_reason", "kind"),
        [
            ("compression", "compression"),
            ("branched", "branch"),
            ("session_reset", "reset"),
            ("user_exit", None),
            (None, None),
        ],
    )
    def test_kind_follows_from_why_the_parent_ended(
        self, store: SessionDBProvider, end_reason: str | None, kind: str | None
    ) -> None:
        start(store, "parent")
        if end_reason:
            store.end_session("parent", end_reason)
        start(store, "child", parent_session_id="parent")
        assert session_of(store, "child")["child_kind"] == kind

    @pytest.mark.parametrize(
        ("config", "kind"),
        [
            ({"_branched_from": "parent"}, "branch"),
            ({"_delegate_from": "parent"}, "delegate"),
            ({"_delegate_from": "a deleted session"}, "delegate"),
            ({"temperature": 1}, "compression"),
        ],
    )
    def test_markers_in_the_configuration_beat_the_parents_end(
        self, store: SessionDBProvider, config: dict[str, Any], kind: str
    ) -> None:
        start(store, "parent")
        store.end_session("parent", "compression")
        start(store, "child", parent_session_id="parent", model_config=config)
        assert session_of(store, "child")["child_kind"] == kind

    def test_given_kind_beats_the_markers(self, store: SessionDBProvider) -> None:
        start(store, "parent")
        config = {"_delegate_from": "parent"}
        start(store, "child", parent_session_id="parent", model_config=config, child_kind="branch")
        assert session_of(store, "child")["child_kind"] == "branch"

    @pytest.mark.parametrize("marker", ["parent", "", "__orphaned__", 0])
    def test_a_delegate_without_a_parent_is_not_listed(self, store: SessionDBProvider, marker: object) -> None:
        start(store, "chat")
        start(store, "delegate", model_config={"_delegate_from": marker})
        assert ids(store.list_sessions_rich()) == ["chat"]
        assert store.session_count(exclude_children=True) == 1
        assert set(ids(store.list_sessions_rich(include_children=True))) == {"chat", "delegate"}

    def test_a_session_that_is_marked_later_is_a_delegate_from_then_on(self, store: SessionDBProvider) -> None:
        start(store, "chat")
        start(store, "delegate")
        store.update_session_meta("delegate", {"_delegate_from": "chat"})
        assert ids(store.list_sessions_rich()) == ["chat"]
        assert session_of(store, "delegate")["child_kind"] == "delegate"

    def test_a_marker_that_comes_later_does_not_change_a_known_kind(self, store: SessionDBProvider) -> None:
        start(store, "parent")
        start(store, "branch", parent_session_id="parent", child_kind="branch")
        store.update_session_meta("branch", {"_delegate_from": "parent"})
        assert session_of(store, "branch")["child_kind"] == "branch"

    def test_a_delegate_whose_parent_is_pruned_stays_hidden(self, store: SessionDBProvider) -> None:
        start(store, "parent")
        start(store, "child", parent_session_id="parent", model_config={"_delegate_from": "parent"})
        exported = store.export_session("child")
        assert exported is not None
        store.delete_session("parent")
        store.import_session(exported)
        assert ids(store.list_sessions_rich()) == []

    def test_a_marker_that_an_older_program_only_guessed_hides_no_import(self, store: SessionDBProvider) -> None:
        marked = '{"_delegate_from": "__orphaned__"}'
        store.import_session({"id": "chat", "source": "cli", "model_config": marked, "messages": []})
        assert ids(store.list_sessions_rich()) == ["chat"]

    def test_a_clock_that_steps_back_makes_no_delegate_of_a_continuation(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "root")
        store.end_session("root", "compression")
        clock.advance(-3600)
        start(store, "tip", parent_session_id="root")
        assert session_of(store, "tip")["child_kind"] == "compression"
        assert store.get_compression_tip("root") == "tip"

    def test_reopening_the_parent_does_not_change_the_kind_of_its_children(self, store: SessionDBProvider) -> None:
        start(store, "parent")
        store.end_session("parent", "branched")
        start(store, "child", parent_session_id="parent")
        store.reopen_session("parent")
        store.end_session("parent", "compression")
        assert session_of(store, "child")["child_kind"] == "branch"
