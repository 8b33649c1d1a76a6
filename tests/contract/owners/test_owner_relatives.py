"""A view for one owner hides the parents and children of a session that belong to another owner."""

from __future__ import annotations

import pytest

from hermes.state.owner import owner_of
from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider
from tests.contract.owners.stored_rows import rows_of
from tests.support.clock import FakeClock
from tests.support.conversations import say, start

ALICE, BOB = owner_of("telegram", "1"), owner_of("telegram", "2")


class TestRelativesOfAnotherOwner:
    @pytest.fixture
    def view(self, store: SessionDBProvider) -> OwnerView:
        """Let a session of Alice continue one of Bob, and one of Bob continue hers."""
        start(store, "bobs", source="telegram", user_id="2")
        say(store, "bobs", "his secret")
        start(store, "alices", source="telegram", user_id="1", parent_session_id="bobs", child_kind="compression")
        say(store, "alices", "her words")
        start(store, "bobs again", source="telegram", user_id="2", parent_session_id="alices", child_kind="compression")
        say(store, "bobs again", "his second secret")
        return store.for_owner(ALICE)

    def test_relatives_of_another_owner_are_named_nowhere(self, store: SessionDBProvider, view: OwnerView) -> None:
        view.set_session_title("alices", "Plan")
        shown = [
            view.get_session("alices"),
            view.get_session_by_title("Plan"),
            view.search_sessions(),
            view.list_sessions_rich(include_children=True),
            view.search_sessions_by_id("alices"),
            view.export_session("alices"),
            view.export_all(),
            view.get_ancestors("alices"),
            view.get_descendants("alices"),
            view.get_compression_tip("alices"),
            view.get_messages_as_conversation("alices", include_ancestors=True),
            view.search_messages("secret OR words"),
            store.get_session("alices", owner="telegram:1"),
            store.list_sessions_rich(include_children=True, owner="telegram:1"),
        ]
        assert "alices" in repr(shown)
        assert "bobs" not in repr(shown)
        assert "secret" not in repr([each for each in shown if each is not shown[11]])

    def test_relatives_of_another_owner_are_not_found_by_parts_of_their_ids(self, view: OwnerView) -> None:
        assert view.search_sessions_by_id("again") == []
        assert view.list_sessions_rich(include_children=True, id_query="again") == []

    def test_relatives_of_another_owner_stay_unchanged_when_the_own_session_changes(
        self, store: SessionDBProvider, view: OwnerView, clock: FakeClock
    ) -> None:
        before = rows_of(store, "bobs", "bobs again")
        clock.advance(100)
        view.append_message("alices", "user", "more")
        view.set_session_archived("alices")
        view.set_session_pinned("alices")
        view.replace_messages("alices", [{"role": "user", "content": "else"}])
        view.clear_messages("alices")
        view.append_message("alices", "user", "again")
        view.compress_session("alices", "next", "in short", tail_from=10**9)
        view.append_message("next", "user", "and on")
        assert rows_of(store, "bobs", "bobs again") == before

    def test_relatives_of_another_owner_do_not_hinder_a_compression(self, view: OwnerView) -> None:
        view.compress_session("alices", "next", "in short", tail_from=10**9)
        assert view.get_compression_tip("alices") == "next"
