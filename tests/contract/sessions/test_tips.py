"""The tip of a conversation: one rule for the list, for browsing, for resuming and for the tip itself."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import Conflict
from hermes.state.engine import Transaction
from hermes.state.owner import owner_of
from hermes.state.provider import SessionDBProvider
from hermes.state.sessions.lists.browsing import BrowseFilter, Order, find_conversations, list_conversations
from tests.support.clock import FakeClock
from tests.support.conversations import compress, exported, ids, say, session_of, start
from tests.support.stores import Opener, engine_of


def link_by_sql(store: SessionDBProvider, child: str, parent: str, root: str, started_at: float) -> None:
    """Make a session the compression child of another, as no operation of the store would."""

    def link(tx: Transaction) -> None:
        tx.run(
            """UPDATE sessions SET parent_session_id = :parent, child_kind = 'compression', chain_root = :root,
                   listed = 0, started_at = :at WHERE id = :child""",
            child=child,
            parent=parent,
            root=root,
            at=started_at,
        )

    engine_of(store).write(link)


def shown_tips(store: SessionDBProvider, session_id: str, **scope: Any) -> set[str]:
    """The session that each surface shows for a conversation, given its first session."""
    listed = [row["id"] for row in store.list_sessions_rich(limit=None, **scope)]
    by_activity = [row["id"] for row in store.list_sessions_rich(limit=None, order_by_last_active=True, **scope)]
    browsed = [
        [each.id for each in list_conversations(store, BrowseFilter(order=order), 10, **scope)] for order in Order
    ]
    found = find_conversations(store, [session_id], **scope)[session_id].id
    assert all(len(each) == 1 for each in (listed, by_activity, *browsed))
    return {
        *(*listed, *by_activity, found, *(each for page in browsed for each in page)),
        store.get_compression_tip(session_id, **scope),
        store.resolve_resume_session_id(session_id, **scope),
    }


@pytest.fixture
def forked(store: SessionDBProvider) -> SessionDBProvider:
    """a -> b, a -> c, b -> d; all are compression children, and d started last."""
    start(store, "a", "b", "c", "d")
    say(store, "b", "in b")
    say(store, "c", "in c")
    say(store, "d", "in d")
    link_by_sql(store, "b", "a", "a", 2e9)
    link_by_sql(store, "c", "a", "a", 3e9)
    link_by_sql(store, "d", "b", "a", 4e9)
    return store


class TestRule:
    def test_each_step_goes_to_the_continuation_that_started_last(self, forked: SessionDBProvider) -> None:
        assert shown_tips(forked, "a") == {"c"}

    def test_tip_of_a_continuation_is_its_own_newest_session(self, forked: SessionDBProvider) -> None:
        assert [forked.get_compression_tip(each) for each in "bcd"] == ["d", "c", "d"]

    def test_tip_is_the_greatest_id_if_continuations_start_at_once(self, forked: SessionDBProvider) -> None:
        link_by_sql(forked, "b", "a", "a", 3e9)
        assert shown_tips(forked, "a") == {"c"}

    def test_a_continuation_counts_even_if_the_clock_went_back(self, store: SessionDBProvider) -> None:
        start(store, "a", "b", "c")
        say(store, "c", "in c")
        link_by_sql(store, "b", "a", "a", 3e9)
        link_by_sql(store, "c", "b", "a", 2e9)
        assert shown_tips(store, "a") == {"c"}

    @pytest.mark.parametrize("order", [Order.MESSAGES, Order.TITLE])
    def test_browsed_list_is_ordered_by_the_values_of_the_tips(self, forked: SessionDBProvider, order: Order) -> None:
        start(forked, "other")
        say(forked, "other", "x", "y")
        say(forked, "d", "d", "has", "most")
        for session_id, title in (("a", "m"), ("b", "a"), ("c", "z"), ("d", "b"), ("other", "n")):
            forked.set_session_title(session_id, title)
        found = list_conversations(forked, BrowseFilter(order=order), 10)
        assert [each.id for each in found] == ["other", "c"]

    def test_search_for_the_tip_ends_in_a_ring_of_sessions(self, store: SessionDBProvider) -> None:
        start(store, "a", "b", "c")
        link_by_sql(store, "b", "c", "a", 2e9)
        link_by_sql(store, "c", "b", "a", 2e9)
        assert {store.get_compression_tip(each) for each in "bc"} == {"b", "c"}
        assert sorted(ids(store.get_ancestors("b"))) == sorted(ids(store.get_descendants("b"))) == ["b", "c"]
        assert [each.id for each in list_conversations(store, BrowseFilter(order=Order.TITLE), 10)] == ["a"]

    def test_owner_sees_the_newest_of_their_own_continuations(self, store: SessionDBProvider) -> None:
        start(store, "a", "b", source="telegram", user_id="1")
        start(store, "c", source="telegram", user_id="2")
        say(store, "b", "hers")
        say(store, "c", "his")
        link_by_sql(store, "b", "a", "a", 2e9)
        link_by_sql(store, "c", "a", "a", 3e9)
        assert shown_tips(store, "a") == {"c"}
        assert shown_tips(store, "a", owner="telegram:1") == {"b"}


class TestSecondContinuation:
    def test_second_continuation_is_refused_and_names_the_first(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "a")
        compress(store, clock, "a", "b")
        compress(store, clock, "b", "c")
        with pytest.raises(Conflict, match="already continued in 'b'") as refused:
            store.create_session("d", "cli", parent_session_id="a", child_kind="compression")
        assert "'c'" in refused.value.hint
        assert store.get_session("d") is None

    def test_existing_second_continuation_is_not_changed(self, store: SessionDBProvider) -> None:
        start(store, "a")
        for _ in range(2):
            store.create_session("b", "cli", parent_session_id="a", child_kind="compression")
        assert store.get_compression_tip("a") == "b"

    def test_second_continuation_with_a_first_message_is_refused(self, store: SessionDBProvider) -> None:
        start(store, "a")
        start(store, "b", parent_session_id="a", child_kind="compression")
        message = {"role": "user", "content": "x"}
        with pytest.raises(Conflict):
            store.start_session("c", "cli", message, parent_session_id="a", child_kind="compression")
        assert store.get_session("c") is None

    def test_continuation_of_another_owner_is_neither_refused_nor_named(self, store: SessionDBProvider) -> None:
        start(store, "a", source="telegram", user_id="1")
        start(store, "his", source="telegram", user_id="2", parent_session_id="a", child_kind="compression")
        view = store.for_owner(owner_of("telegram", "1"))
        view.create_session("hers", "telegram", parent_session_id="a", child_kind="compression")
        assert view.get_compression_tip("a") == "hers"
        with pytest.raises(Conflict) as refused:
            view.create_session("again", "telegram", parent_session_id="a", child_kind="compression")
        assert "his" not in str(refused.value).replace("this", "")

    def test_continuation_without_a_kind_becomes_the_tip(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "a")
        compress(store, clock, "a", "b")
        say(store, compress(store, clock, "a", "c"), "x")
        assert session_of(store, "c")["child_kind"] == "compression"
        assert shown_tips(store, "a") == {"c"}

    @pytest.mark.parametrize("order", ["abcd", "dcba", "bcad"])
    def test_second_continuation_can_be_imported_in_any_order(
        self, forked: SessionDBProvider, open_store: Opener, order: str
    ) -> None:
        other = open_store("other")
        for session_id in order:
            other.import_session(exported(forked, session_id), imported_from="file")
        kinds = {each: session_of(other, each)["child_kind"] for each in "abcd"}
        assert kinds == {"a": None, "b": "compression", "c": "compression", "d": "compression"}
        assert other.get_compression_tip("a") == forked.get_compression_tip("a") == "c"
        assert [row["id"] for row in other.list_sessions_rich()] == ["c"]


class TestDeletion:
    def test_deleting_the_tip_leaves_the_other_continuation(self, forked: SessionDBProvider) -> None:
        forked.delete_session("c")
        forked.clear_messages("b")
        assert shown_tips(forked, "a") == {"d"}

    def test_deleting_the_first_session_separates_its_continuations(self, forked: SessionDBProvider) -> None:
        forked.delete_session("a")
        assert sorted(ids(forked.list_sessions_rich())) == ["c", "d"]
