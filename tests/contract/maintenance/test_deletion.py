"""Deletion: what is deleted, what is deleted with it, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import DAY_S, FakeClock
from tests.support.conversations import compress, ids, known, say, session_of, start, start_ended, talk


class TestDelete:
    def test_delete_removes_session_and_messages(self, store: SessionDBProvider) -> None:
        start(store, "s")
        talk(store, "s", 2)
        assert store.delete_session("s")
        assert (store.get_session("s"), store.get_messages("s", include_inactive=True)) == (None, [])

    def test_delete_removes_all_dependent_rows(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", tool_calls=[{"function": {"name": "terminal"}}])
        store.rewind_to_message("s", say(store, "s", "x")[0])
        store.update_token_counts("s", input_tokens=1)
        store.try_acquire_compression_lock("s", "me")
        store.delete_session("s")
        start(store, "s")
        left = (
            store.get_session_tools("s"),
            store.list_rewinds("s"),
            store.list_usage_events("s"),
            store.get_compression_lock_holder("s"),
        )
        assert left == ({}, [], [], None)

    def test_delete_leaves_other_sessions_alone(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        say(store, "b", "mine")
        store.delete_session("a")
        assert len(store.get_messages("b")) == 1

    def test_deleting_twice_returns_false(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.delete_session("s")
        assert not store.delete_session("s")

    def test_delete_removes_open_archived_and_pinned_sessions(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.set_session_archived("s")
        store.set_session_pinned("s")
        assert store.delete_session("s")


class TestChildren:
    @pytest.mark.parametrize("kind", ["branch", "compression", "reset", "import", None])
    def test_children_of_other_kinds_stay_without_a_parent(self, store: SessionDBProvider, kind: str | None) -> None:
        start(store, "parent")
        start(store, "child", parent_session_id="parent", child_kind=kind)
        say(store, "child", "kept")
        store.delete_session("parent")
        assert session_of(store, "child")["parent_session_id"] is None
        assert ids(store.list_sessions_rich()) == ["child"]

    def test_delegates_are_deleted_with_their_parent(self, store: SessionDBProvider) -> None:
        start(store, "parent")
        start(store, "helper", parent_session_id="parent", child_kind="delegate")
        start(store, "helper's helper", parent_session_id="helper", child_kind="delegate")
        store.delete_session("parent")
        assert known(store) == set()

    def test_branches_of_delegates_stay(self, store: SessionDBProvider) -> None:
        start(store, "parent")
        start(store, "helper", parent_session_id="parent", child_kind="delegate")
        start(store, "branch", parent_session_id="helper", child_kind="branch")
        store.delete_session("parent")
        assert known(store) == {"branch"}

    def test_continuation_of_a_delegate_is_deleted_with_it(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "parent")
        start(store, "helper", parent_session_id="parent", child_kind="delegate")
        compress(store, clock, "helper", "helper goes on")
        store.delete_session("parent")
        assert store.list_sessions_rich() == []

    def test_chain_continues_without_its_middle(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "a")
        for parent, child in ("ab", "bc", "cd"):
            compress(store, clock, parent, child)
        store.delete_session("b")
        assert set(ids(store.list_sessions_rich())) == {"a", "d"}
        assert (store.get_compression_tip("a"), store.get_compression_tip("c")) == ("a", "d")

    def test_chain_without_its_root_is_ordered_by_its_own_activity(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "a")
        compress(store, clock, "a", "b")
        compress(store, clock, "b", "c")
        clock.advance(1)
        start(store, "other")
        clock.advance(1)
        say(store, "c", "x")
        store.delete_session("a")
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["c", "other"]

    def test_chain_without_its_root_keeps_recording_activity(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "a")
        compress(store, clock, "a", "b")
        compress(store, clock, "b", "c")
        store.delete_session("a")
        clock.advance(1)
        start(store, "other")
        clock.advance(1)
        say(store, "c", "x")
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["c", "other"]


class TestDeleteMany:
    def test_delete_many_counts_the_given_ids_that_existed(self, store: SessionDBProvider) -> None:
        start(store, "a", "b", "c")
        assert store.delete_sessions(["a", "b", "a", "missing", ""]) == 2
        assert known(store) == {"c"}

    def test_delete_many_does_not_count_delegates(self, store: SessionDBProvider) -> None:
        start(store, "a")
        start(store, "helper", parent_session_id="a", child_kind="delegate")
        assert store.delete_sessions(["a"]) == 1

    def test_parent_and_child_can_be_deleted_together(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        compress(store, clock, "root", "tip")
        assert store.delete_sessions(["root", "tip"]) == 2

    def test_deleting_no_ids_deletes_nothing(self, store: SessionDBProvider) -> None:
        assert store.delete_sessions([]) == 0

    def test_more_ids_than_a_statement_accepts_can_be_deleted(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.delete_sessions([*(f"unknown {n}" for n in range(40_000)), "s"]) == 1

    def test_more_delegates_than_a_statement_accepts_are_deleted(self, store: SessionDBProvider) -> None:
        start(store, "root")
        for number in range(450):
            start(store, f"helper {number}", parent_session_id="root", child_kind="delegate")
        store.delete_session("root")
        assert known(store) == set()


class TestFiles:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        directory = tmp_path / "sessions"
        directory.mkdir()
        for name in ("s.json", "s.jsonl", "request_dump_s_1.json", "request_dump_s_2.json", "other.json", "s.txt"):
            (directory / name).touch()
        return directory

    def left(self, directory: Path) -> set[str]:
        return {path.name for path in directory.iterdir()}

    def test_files_of_a_deleted_session_are_removed(self, store: SessionDBProvider, directory: Path) -> None:
        start(store, "s")
        store.delete_session("s", directory)
        assert self.left(directory) == {"other.json", "s.txt"}

    def test_files_of_sessions_with_longer_ids_stay(self, store: SessionDBProvider, tmp_path: Path) -> None:
        theirs = {
            "request_dump_20261115_190312_a1b2c3d4_20261115_190400_123456.json",
            "request_dump_20261115_190312_12345678_20261115_190400_123456.json",
            "request_dump_20261115_190312_a1b2c3d4_1.json",
            "request_dump_20261115_190312_20261115_190400.json",
            "request_dump_20261115_x_1.json",
        }
        own = {"request_dump_20261115_20261115_190400_123456.json", "request_dump_20261115_3.json"}
        for name in theirs | own:
            (tmp_path / name).touch()
        start(store, "20261115")
        store.delete_session("20261115", tmp_path)
        assert {path.name for path in tmp_path.iterdir() if path.suffix == ".json"} == theirs

    def test_files_of_deleted_delegates_are_removed(self, store: SessionDBProvider, directory: Path) -> None:
        start(store, "parent")
        start(store, "s", parent_session_id="parent", child_kind="delegate")
        store.delete_session("parent", directory)
        assert self.left(directory) == {"other.json", "s.txt"}

    def test_files_of_pruned_sessions_are_removed(
        self, store: SessionDBProvider, clock: FakeClock, directory: Path
    ) -> None:
        start_ended(store, "s")
        clock.advance(100 * DAY_S)
        store.prune_sessions(sessions_dir=directory)
        assert self.left(directory) == {"other.json", "s.txt"}

    def test_files_of_deleted_empty_sessions_are_removed(self, store: SessionDBProvider, directory: Path) -> None:
        start(store, "s")
        store.delete_session_if_empty("s", directory)
        assert self.left(directory) == {"other.json", "s.txt"}

    def test_files_stay_without_a_directory(self, store: SessionDBProvider, directory: Path) -> None:
        start(store, "s")
        store.delete_session("s")
        assert "s.json" in self.left(directory)

    def test_files_of_an_unknown_session_stay(self, store: SessionDBProvider, directory: Path) -> None:
        store.delete_session("s", directory)
        assert "s.json" in self.left(directory)

    def test_missing_files_do_no_harm(self, store: SessionDBProvider, tmp_path: Path) -> None:
        start(store, "s")
        assert store.delete_session("s", tmp_path / "missing")

    def test_files_that_cannot_be_removed_do_no_harm(self, store: SessionDBProvider, tmp_path: Path) -> None:
        (tmp_path / "s.json").mkdir()
        start(store, "s")
        assert store.delete_session("s", str(tmp_path))

    @pytest.mark.parametrize("session_id", ["../outside", "*", "?", "[s]"])
    def test_files_of_other_sessions_are_safe_from_any_id(
        self, store: SessionDBProvider, tmp_path: Path, directory: Path, session_id: str
    ) -> None:
        (tmp_path / "outside.json").touch()
        before = self.left(directory)
        start(store, session_id)
        store.delete_session(session_id, directory)
        assert (self.left(directory), (tmp_path / "outside.json").exists()) == (before, True)


class TestEmpty:
    @pytest.fixture
    def sessions(self, store: SessionDBProvider) -> SessionDBProvider:
        start(store, "empty", "open", "archived", "pinned", "full", "titled")
        say(store, "full", "x")
        store.set_session_title("titled", "Title")
        store.set_session_archived("archived")
        store.set_session_pinned("pinned")
        for session_id in ("empty", "archived", "pinned", "full", "titled"):
            store.end_session(session_id, "user_exit")
        return store

    def test_ended_sessions_without_messages_are_deleted(self, sessions: SessionDBProvider) -> None:
        assert sessions.delete_empty_sessions() == 2
        assert known(sessions) == {"open", "archived", "pinned", "full"}

    def test_count_empty_sessions_returns_how_many_would_be_deleted(self, sessions: SessionDBProvider) -> None:
        assert sessions.count_empty_sessions() == 2

    def test_children_of_an_empty_session_stay(self, sessions: SessionDBProvider) -> None:
        start(sessions, "child", parent_session_id="empty", child_kind="branch")
        sessions.delete_empty_sessions()
        assert session_of(sessions, "child")["parent_session_id"] is None

    def test_empty_session_stays_if_a_delegate_has_messages(self, store: SessionDBProvider) -> None:
        start_ended(store, "empty")
        start(store, "helper", parent_session_id="empty", child_kind="delegate")
        say(store, "helper", "done")
        assert store.count_empty_sessions() == 0
        assert store.delete_empty_sessions() == 0
        assert known(store) == {"empty", "helper"}


class TestDeleteIfEmpty:
    def test_empty_session_is_deleted(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.delete_session_if_empty("s")
        assert store.get_session("s") is None

    def test_ended_empty_session_is_deleted(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.end_session("s", "user_exit")
        assert store.delete_session_if_empty("s")

    def test_session_with_a_message_stays(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "x")
        assert not store.delete_session_if_empty("s")

    def test_session_with_an_undone_message_stays(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", say(store, "s", "x")[0])
        assert not store.delete_session_if_empty("s")

    def test_session_with_a_title_stays(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.set_session_title("s", "Title")
        assert not store.delete_session_if_empty("s")

    def test_session_with_a_child_stays(self, store: SessionDBProvider) -> None:
        start(store, "s")
        start(store, "child", parent_session_id="s", child_kind="delegate")
        assert not store.delete_session_if_empty("s")

    def test_deleting_an_unknown_session_if_empty_returns_false(self, store: SessionDBProvider) -> None:
        assert not store.delete_session_if_empty("missing")
