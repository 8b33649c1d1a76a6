"""A search finds messages as soon as they are stored, and only while they exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import at_once, contents, ids, say, start
from tests.support.stores import Opener

PATIENCE_S = 10.0
EVERYTHING = 100_000
BATCH = 512

Asking = Callable[..., list[int]]


@pytest.fixture
def finds(store: SessionDBProvider) -> Asking:
    """Return what the store of the test finds, sorted."""
    return lambda query, **filters: found_in(store, query, **filters)


def found_in(store: SessionDBProvider, query: str, **filters: Any) -> list[int]:
    """Return the ids of all messages that match, sorted."""
    results = store.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S, **filters)
    assert (results.complete, results.degraded) == (True, False)
    return sorted(ids(results))


def fill(store: SessionDBProvider, session_id: str, count: int) -> list[int]:
    """Append messages that each have a word of their own."""
    return store.append_messages(
        session_id, [{"role": "user", "content": f"filler {word(number)}"} for number in range(count)]
    )


def word(number: int) -> str:
    """Return a word of letters for a number."""
    return "w" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


class TestAppend:
    def test_append_makes_a_message_findable(self, store: SessionDBProvider, finds: Asking) -> None:
        start(store, "s")
        for number in range(30):
            (message_id,) = say(store, "s", f"filler {word(number)} 世{chr(0x4E00 + number)}")
            assert finds(word(number)) == [message_id]
            assert finds(f"世{chr(0x4E00 + number)}") == [message_id]

    @pytest.mark.parametrize("count", [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 2 * BATCH + 300])
    def test_append_of_many_makes_each_findable(self, store: SessionDBProvider, finds: Asking, count: int) -> None:
        found = fill(store, start(store, "s"), count)
        assert finds("filler") == found
        for number in (0, 1, count // 2, count - 2, count - 1):
            assert finds(word(number)) == [found[number]]
            assert finds(f"{word(number)} filler -nothing") == [found[number]]
            assert finds(f"*{word(number)}*", until=1e12)[0] == found[number]
        assert finds("nothing") == []

    def test_messages_appended_across_the_border_of_a_batch_are_found(
        self, store: SessionDBProvider, finds: Asking
    ) -> None:
        found = fill(store, start(store, "s"), BATCH - 5)
        for number in range(10):
            found += say(store, "s", f"filler {word(BATCH - 5 + number)}")
            assert finds(word(BATCH - 5 + number)) == found[-1:]
            assert finds("filler") == found

    def test_appended_message_is_found_by_another_handle(self, open_store: Opener) -> None:
        one, other = open_store(), open_store()
        found = say(one, start(one, "s"), "docker")
        assert found_in(other, "docker") == found

    def test_appended_message_is_found_by_an_open_reader(self, open_store: Opener) -> None:
        writer = open_store()
        start(writer, "s")
        reader = open_store(read_only=True)
        assert found_in(reader, "docker") == []
        found = say(writer, "s", "docker")
        assert found_in(reader, "docker") == found
        found += fill(writer, "s", BATCH + 3)
        assert found_in(reader, "docker OR filler") == found

    def test_appended_message_is_found_after_the_store_was_closed(self, open_store: Opener) -> None:
        store = open_store()
        found = fill(store, start(store, "s"), 700)
        for _ in range(3):
            store.close()
            store = open_store()
            assert found_in(store, "filler") == found
            found += say(store, "s", "filler again")
            assert found_in(store, "filler") == found

    def test_append_by_many_threads_loses_nothing(self, store: SessionDBProvider, finds: Asking) -> None:
        start(store, "s")

        def work(number: int) -> list[int]:
            made = []
            for turn in range(60):
                made += say(store, "s", f"thread{word(number)} turn{word(turn)}")
                assert finds(f"thread{word(number)} turn{word(turn)}") == made[-1:]
            return made

        made = at_once(4, work)
        for number, mine in enumerate(made):
            assert finds(f"thread{word(number)}") == mine

    def test_message_appended_again_with_the_same_uid_is_found_once(
        self, store: SessionDBProvider, finds: Asking
    ) -> None:
        start(store, "s")
        message_id = store.append_message("s", "user", "docker", uid="u1")
        store.append_message("s", "user", "docker", uid="u1")
        assert finds("docker") == [message_id]

    def test_message_of_a_failed_append_is_not_found(self, store: SessionDBProvider, finds: Asking) -> None:
        start(store, "s")
        with pytest.raises(Exception, match="nowhere"):
            store.append_message("nowhere", "user", "docker")
        assert finds("docker") == []


@pytest.fixture(params=["unindexed", "indexed", "more of both"])
def indexed_store(request: pytest.FixtureRequest, open_store: Opener) -> SessionDBProvider:
    """Create a store with the sessions `s` and `t`, with its index in one of several states."""
    store = open_store()
    start(store, "s", "t")
    say(store, "s", "docker one", "docker two", "podman three")
    say(store, "t", "docker four")
    if request.param != "unindexed":
        store.close()
        store = open_store()
    if request.param == "more of both":
        fill(store, "t", BATCH + 100)
    return store


class TestChange:
    def test_replaced_messages_are_not_found_any_more(self, indexed_store: SessionDBProvider) -> None:
        indexed_store.replace_messages("s", [{"role": "user", "content": "compose five"}])
        assert len(found_in(indexed_store, "docker")) == 1
        assert len(found_in(indexed_store, "compose")) == 1
        assert found_in(indexed_store, "podman") == []

    def test_replaced_messages_with_the_same_text_are_found(self, indexed_store: SessionDBProvider) -> None:
        for _ in range(3):
            indexed_store.replace_messages("s", [{"role": "user", "content": "docker one"}])
            assert len(found_in(indexed_store, "docker")) == 2
        assert found_in(indexed_store, "two") == []

    def test_messages_of_a_cleared_session_are_not_found(self, indexed_store: SessionDBProvider) -> None:
        indexed_store.clear_messages("s")
        assert contents(indexed_store.search_messages("docker")[0]["context"])[0] == "docker four"
        assert len(found_in(indexed_store, "docker")) == 1
        say(indexed_store, "s", "docker again")
        assert len(found_in(indexed_store, "docker")) == 2

    def test_messages_of_a_deleted_session_are_not_found(self, indexed_store: SessionDBProvider) -> None:
        indexed_store.delete_session("s")
        assert len(found_in(indexed_store, "docker")) == 1
        assert found_in(indexed_store, "podman") == []
        assert found_in(indexed_store, "*odma*") == []

    def test_nothing_is_found_after_deleting_everything(self, indexed_store: SessionDBProvider) -> None:
        indexed_store.delete_sessions(["s", "t"])
        assert found_in(indexed_store, "docker") == []
        assert found_in(indexed_store, "NOT nothing") == []

    def test_deleted_ids_are_not_found_under_new_text(self, indexed_store: SessionDBProvider) -> None:
        indexed_store.delete_sessions(["s", "t"])
        start(indexed_store, "u")
        found = say(indexed_store, "u", "compose", "nginx")
        assert found_in(indexed_store, "docker OR podman") == []
        assert found_in(indexed_store, "compose OR nginx") == found

    def test_messages_of_an_imported_session_are_found(self, indexed_store: SessionDBProvider) -> None:
        exported = indexed_store.export_session("s")
        assert exported is not None
        indexed_store.import_session({**exported, "title": None}, "rename")
        assert len(found_in(indexed_store, "docker")) == 5
        assert len(found_in(indexed_store, "podman", source_filter=["cli"])) == 2


class TestRewind:
    def test_undo_hides_messages_from_search_at_once(self, indexed_store: SessionDBProvider) -> None:
        found = ids(indexed_store.get_messages("s"))
        indexed_store.rewind_to_message("s", found[1])
        assert found_in(indexed_store, "docker", session_ids=["s"]) == found[:1]
        assert found_in(indexed_store, "podman") == []
        assert found_in(indexed_store, "*odma*") == []
        assert found_in(indexed_store, "NOT nothing", session_ids=["s"]) == found[:1]

    def test_undone_messages_are_found_on_request(self, indexed_store: SessionDBProvider) -> None:
        found = ids(indexed_store.get_messages("s"))
        indexed_store.rewind_to_message("s", found[1])
        assert found_in(indexed_store, "docker", session_ids=["s"], include_inactive=True) == found[:2]
        assert found_in(indexed_store, "podman", include_inactive=True) == found[2:]

    def test_restored_messages_are_found_again(self, indexed_store: SessionDBProvider) -> None:
        found = ids(indexed_store.get_messages("s"))
        indexed_store.rewind_to_message("s", found[0])
        assert found_in(indexed_store, "docker", session_ids=["s"]) == []
        indexed_store.restore_rewound("s", found[0])
        assert found_in(indexed_store, "docker", session_ids=["s"]) == found[:2]
        assert found_in(indexed_store, "podman") == found[2:]

    def test_message_after_an_undo_is_found_instead_of_the_undone_one(self, indexed_store: SessionDBProvider) -> None:
        found = ids(indexed_store.get_messages("s"))
        indexed_store.rewind_to_message("s", found[1])
        (instead,) = say(indexed_store, "s", "docker instead")
        assert found_in(indexed_store, "docker", session_ids=["s"]) == [found[0], instead]

    def test_word_that_only_undone_messages_have_is_searched_inside_words(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "dockerfile", "docker")
        store.rewind_to_message("s", found[1])
        results = store.search_messages("docker")
        assert (ids(results), results.path) == (found[:1], "substring")
