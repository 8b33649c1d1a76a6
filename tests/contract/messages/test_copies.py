"""A message that compression copies into the next session is replayed once and found once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from hermes.state.recall.tool import session_search
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import column, contents, exported, ids, say, start

TEXTS = ["zebra one", "answer one", "zebra two", "answer two", "zebra three", "answer three"]
ROLES = ["user", "assistant"] * 3
SUMMARY = "in short: animals"


@pytest.fixture
def numbers(store: SessionDBProvider, clock: FakeClock) -> list[int]:
    """Return the ids of a conversation whose first and last exchange were copied."""
    start(store, "root")
    found = []
    for role, text in zip(ROLES, TEXTS, strict=True):
        clock.advance(0.37)
        found.append(store.append_message("root", role, text))
    clock.advance(1)
    store.compress_session("root", "child", SUMMARY, head_upto=found[1], tail_from=found[4])
    clock.advance(1)
    say(store, "child", "zebra four")
    return found


def replayed(store: SessionDBProvider, session_id: str, **options: Any) -> list[Any]:
    return contents(store.get_messages_as_conversation(session_id, include_ancestors=True, **options))


@pytest.mark.usefixtures("numbers")
class TestReplay:
    def test_replay_shows_what_was_carried_over_once(self, store: SessionDBProvider) -> None:
        assert replayed(store, "child") == [*TEXTS, SUMMARY, "zebra four"]

    def test_replay_shows_a_copy_once_over_several_compressions(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        clock.advance(1)
        last = store.get_messages("child")[-1]["id"]
        first = store.get_messages("child")[0]["id"]
        store.compress_session("child", "grandchild", "shorter", head_upto=first, tail_from=last)
        say(store, "grandchild", "zebra five")
        assert replayed(store, "grandchild") == [*TEXTS, SUMMARY, "zebra four", "shorter", "zebra five"]

    def test_replay_of_the_child_alone_has_only_its_messages(self, store: SessionDBProvider) -> None:
        alone = contents(store.get_messages_as_conversation("child"))
        assert alone == [*TEXTS[:2], SUMMARY, *TEXTS[4:], "zebra four"]

    def test_replay_leaves_out_messages_undone_in_the_child(self, store: SessionDBProvider) -> None:
        copy = store.get_messages("child")[3]
        assert copy["content"] == "zebra three"
        store.rewind_to_message("child", copy["id"])
        assert replayed(store, "child") == [*TEXTS[:4], SUMMARY]

    def test_replay_shows_undone_messages_on_request(self, store: SessionDBProvider) -> None:
        store.rewind_to_message("child", store.get_messages("child")[3]["id"])
        assert replayed(store, "child", include_inactive=True) == [*TEXTS, SUMMARY, "zebra four"]

    def test_copies_keep_their_uids_in_an_export(self, store: SessionDBProvider) -> None:
        originals, copies = (column(exported(store, each)["messages"], "uid") for each in ("root", "child"))
        assert [uid for uid in copies if uid in originals] == [*originals[:2], *originals[4:]]

    def test_replay_keeps_messages_apart_whose_caller_counts_uids_for_each_session(
        self, store: SessionDBProvider
    ) -> None:
        start(store, "a")
        store.append_message("a", "user", "first", uid="1", timestamp=NOW + 100)
        store.end_session("a", "compression")
        start(store, "b", parent_session_id="a")
        store.append_message("b", "assistant", "second", uid="1", timestamp=NOW + 200)
        assert replayed(store, "b") == ["first", "second"]

    def test_replay_recognizes_a_copy_made_by_a_caller(self, store: SessionDBProvider) -> None:
        start(store, "a")
        store.append_message("a", "assistant", "kept", uid="k", timestamp=NOW + 100)
        store.end_session("a", "compression")
        start(store, "b", parent_session_id="a")
        store.append_message("b", "assistant", "kept", uid="k", timestamp=NOW + 200)
        assert replayed(store, "b") == ["kept"]


class TestSearch:
    @pytest.mark.parametrize("sort", [None, "newest", "oldest"])
    def test_search_finds_what_was_carried_over_once(
        self, store: SessionDBProvider, numbers: list[int], sort: Any
    ) -> None:
        found = store.search_messages("zebra", sort=sort)
        assert sorted(column(found, "session_id")) == ["child", "root", "root", "root"]
        assert set(ids(found)) >= {numbers[0], numbers[2], numbers[4]}

    def test_pages_of_copies_neither_repeat_nor_skip(self, store: SessionDBProvider, numbers: list[int]) -> None:
        pages = [ids(store.search_messages("zebra", sort="newest", limit=1, offset=at)) for at in range(5)]
        assert [*pages[0][1:], *[page[0] for page in pages[1:4]]] == [numbers[4], numbers[2], numbers[0]]
        assert pages[4] == []

    def test_search_finds_parts_of_words_once(self, store: SessionDBProvider, numbers: list[int]) -> None:
        assert len(store.search_messages("*ebr*")) == 4

    def test_search_within_the_child_finds_its_copies(self, store: SessionDBProvider, numbers: list[int]) -> None:
        assert len(store.search_messages("zebra", session_ids=["child"])) == 3

    def test_search_without_the_parent_finds_the_copies(self, store: SessionDBProvider, numbers: list[int]) -> None:
        assert len(store.search_messages("zebra", exclude_session_ids=["root"])) == 3

    def test_search_with_a_role_finds_a_copy_once(self, store: SessionDBProvider, numbers: list[int]) -> None:
        assert len(store.search_messages("answer", role_filter=["assistant"])) == 3

    def test_search_finds_a_copy_whose_original_was_undone(self, store: SessionDBProvider, numbers: list[int]) -> None:
        store.rewind_to_message("root", numbers[4])
        found = store.search_messages("zebra", sort="oldest")
        assert column(found, "session_id") == ["root", "root", "child", "child"]

    def test_search_of_past_sessions_shows_the_conversation_once(
        self, store: SessionDBProvider, numbers: list[int]
    ) -> None:
        answer = json.loads(session_search("zebra", db=store))
        assert answer["count"] == 1

    def test_search_shows_a_branch_and_its_parent(self, store: SessionDBProvider) -> None:
        start(store, "trunk")
        say(store, "trunk", "okapi")
        store.branch_session("trunk", "twig")
        assert sorted(column(store.search_messages("okapi"), "session_id")) == ["trunk", "twig"]


@pytest.mark.usefixtures("numbers")
class TestSearchAfterUndoing:
    def undo(self, store: SessionDBProvider) -> int:
        copy = store.get_messages("child")[3]["id"]
        store.rewind_to_message("child", copy)
        return copy

    def places(self, store: SessionDBProvider, query: str, **options: Any) -> list[str]:
        return sorted(column(store.search_messages(query, **options), "session_id"))

    def test_message_undone_in_a_continuation_is_not_found_in_the_original(self, store: SessionDBProvider) -> None:
        assert self.places(store, '"zebra three"') == ["root"]
        self.undo(store)
        assert self.places(store, '"zebra three"') == []
        assert self.places(store, '"zebra three"', session_ids=["root"]) == []
        assert self.places(store, '"zebra one"') == ["root"]

    def test_message_undone_in_a_continuation_is_found_with_include_inactive(self, store: SessionDBProvider) -> None:
        self.undo(store)
        assert self.places(store, '"zebra three"', include_inactive=True) == ["root"]

    def test_message_restored_in_a_continuation_is_found_again(self, store: SessionDBProvider) -> None:
        store.restore_rewound("child", self.undo(store))
        assert self.places(store, '"zebra three"') == ["root"]

    def test_message_undone_in_a_later_session_is_found_in_no_earlier_one(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        clock.advance(1)
        numbers = ids(store.get_messages("child"))
        store.compress_session("child", "grandchild", "shorter", tail_from=numbers[3])
        store.rewind_to_message("grandchild", store.get_messages("grandchild")[1]["id"])
        assert self.places(store, '"zebra three"') == self.places(store, '"zebra four"') == []

    def test_message_undone_in_a_branch_is_still_found_in_its_parent(self, store: SessionDBProvider) -> None:
        store.branch_session("child", "other")
        store.rewind_to_message("other", store.get_messages("other")[3]["id"])
        assert self.places(store, '"zebra three"') == ["root"]
