"""Browsing: pages of conversations in every order, narrowed by words."""

from __future__ import annotations

import pytest

from hermes.state.provider import SessionDBProvider
from hermes.state.sessions.lists.browsing import (
    BrowseFilter,
    ListedConversation,
    Order,
    conversation_session_ids,
    find_conversations,
    list_conversations,
)
from tests.support.clock import FakeClock
from tests.support.conversations import compress, say, start, talk


def names_of(conversations: list[ListedConversation]) -> list[str]:
    return [each.id for each in conversations]


def begin(
    store: SessionDBProvider, clock: FakeClock, session_id: str, words: str, title: str = "", **fields: str
) -> None:
    """Create a conversation that starts a second after the previous one."""
    clock.advance(1)
    start(store, session_id, **fields)
    say(store, session_id, words)
    if title:
        store.set_session_title(session_id, title)


def all_pages(store: SessionDBProvider, wanted: BrowseFilter, size: int) -> list[ListedConversation]:
    found: list[ListedConversation] = []
    while page := list_conversations(store, wanted, size, found[-1] if found else None):
        assert len(page) <= size
        found += page
    return found


@pytest.fixture
def full_store(store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
    begin(store, clock, "a", "refactor the pool", "Zebra")
    begin(store, clock, "b", "plan a trip", "apple", source="telegram")
    begin(store, clock, "c", "What is the weather?")
    begin(store, clock, "d", "write a letter", "Mango")
    talk(store, "b", 3)
    clock.advance(1)
    say(store, "a", "go on")
    return store


class TestOrder:
    @pytest.mark.parametrize(
        ("order", "expected"),
        [
            (Order.ACTIVE, ["a", "d", "b", "c"]),
            (Order.STARTED, ["d", "c", "b", "a"]),
            (Order.MESSAGES, ["b", "a", "d", "c"]),
            (Order.TITLE, ["b", "d", "a", "c"]),
        ],
    )
    @pytest.mark.parametrize("size", [1, 3, 10])
    def test_browse_order_is_the_same_on_pages_of_any_size(
        self, full_store: SessionDBProvider, order: Order, expected: list[str], size: int
    ) -> None:
        assert names_of(all_pages(full_store, BrowseFilter(order=order), size)) == expected

    @pytest.mark.parametrize("order", Order)
    def test_equal_conversations_are_each_on_one_page(self, store: SessionDBProvider, order: Order) -> None:
        start(store, *(f"s{number}" for number in range(7)))
        found = names_of(all_pages(store, BrowseFilter(order=order), 2))
        assert sorted(found) == [f"s{number}" for number in range(7)]


class TestWords:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("zeb", ["a"]),
            ("ZEBRA", ["a"]),
            ("weather", ["c"]),
            ("pool zebra", ["a"]),
            ("trip zebra", []),
            ("telegram", ["b"]),
            ("  ", ["a", "d", "b", "c"]),
            ("%", []),
            ("_", []),
            ("!", []),
            ("?", ["c"]),
        ],
    )
    def test_words_filter_the_list(self, full_store: SessionDBProvider, words: str, expected: list[str]) -> None:
        assert names_of(list_conversations(full_store, BrowseFilter(words), 10)) == expected

    @pytest.mark.parametrize("words", ["проект", "Проект", "ПРОЕКТ", "京都", "ébène"])
    def test_words_of_any_script_are_found(self, store: SessionDBProvider, clock: FakeClock, words: str) -> None:
        begin(store, clock, "a", "hello", "Проект 京都 Ébène")
        assert names_of(list_conversations(store, BrowseFilter(words), 10)) == ["a"]

    def test_conversation_is_found_by_part_of_its_id(self, full_store: SessionDBProvider, clock: FakeClock) -> None:
        begin(full_store, clock, "20261115_190312_a1b2c3d4", "x")
        assert names_of(list_conversations(full_store, BrowseFilter("190312"), 10)) == ["20261115_190312_a1b2c3d4"]


class TestFilters:
    def test_list_can_be_filtered_by_source(self, full_store: SessionDBProvider) -> None:
        assert names_of(list_conversations(full_store, BrowseFilter(source="telegram"), 10)) == ["b"]
        assert names_of(list_conversations(full_store, BrowseFilter(hidden_sources=("cli",)), 10)) == ["b"]

    def test_archived_conversations_have_their_own_list(self, full_store: SessionDBProvider) -> None:
        full_store.set_session_archived("c", True)
        assert names_of(list_conversations(full_store, BrowseFilter(), 10)) == ["a", "d", "b"]
        (archived,) = list_conversations(full_store, BrowseFilter(archived_only=True), 10)
        assert (archived.id, archived.is_archived) == ("c", True)

    def test_list_can_be_filtered_by_owner(self, store: SessionDBProvider, clock: FakeClock) -> None:
        begin(store, clock, "a", "x", source="telegram", user_id="7")
        begin(store, clock, "b", "x", source="telegram", user_id="8")
        assert names_of(list_conversations(store, BrowseFilter(), 10, owner="telegram:7")) == ["a"]
        assert find_conversations(store, ["a", "b"], owner="telegram:8").keys() == {"b"}


class TestCompressed:
    @pytest.fixture
    def compressed(self, full_store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        compress(full_store, clock, "a", "a2")
        compress(full_store, clock, "a2", "a3")
        talk(full_store, "a3", 5)
        full_store.set_session_title("a3", "the newest")
        return full_store

    @pytest.mark.parametrize("order", Order)
    def test_compressed_conversation_is_one_row_with_the_newest_session(
        self, compressed: SessionDBProvider, order: Order
    ) -> None:
        (found,) = [
            each for each in list_conversations(compressed, BrowseFilter(order=order), 10) if each.root_id == "a"
        ]
        assert (found.id, found.title, found.message_count) == ("a3", "the newest", 10)

    def test_compressed_conversation_is_ordered_by_what_is_shown(self, compressed: SessionDBProvider) -> None:
        assert names_of(list_conversations(compressed, BrowseFilter(order=Order.MESSAGES), 1)) == ["a3"]
        assert names_of(list_conversations(compressed, BrowseFilter(order=Order.TITLE), 10)) == ["b", "d", "a3", "c"]

    @pytest.mark.parametrize("words", ["zebra", "newest"])
    def test_compressed_conversation_is_found_by_the_names_of_its_first_and_its_newest_session(
        self, compressed: SessionDBProvider, words: str
    ) -> None:
        assert names_of(list_conversations(compressed, BrowseFilter(words), 10)) == ["a3"]

    def test_compressed_conversation_is_found_from_each_of_its_sessions(self, compressed: SessionDBProvider) -> None:
        found = find_conversations(compressed, ["a", "a2", "b", "nowhere"])
        assert {each: conversation.id for each, conversation in found.items()} == {"a": "a3", "a2": "a3", "b": "b"}

    def test_all_sessions_of_a_compressed_conversation_are_listed(self, compressed: SessionDBProvider) -> None:
        found = find_conversations(compressed, ["a2", "b"])
        assert conversation_session_ids(compressed, found["a2"]) == ["a", "a2", "a3"]
        assert conversation_session_ids(compressed, found["b"]) == ["b"]
