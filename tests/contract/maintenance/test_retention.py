"""Pruning: which sessions are old enough for deletion, and which always stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import DAY_S, NOW, FakeClock
from tests.support.conversations import compress, known, say, session_of, start, start_ended


class WhileFilesAreRemoved:
    """A directory that runs a function on first use, after the first slice of a long deletion."""

    def __init__(self, directory: Path, happen: Callable[[], object]) -> None:
        self.path: Any = self
        self.was_asked = False
        self._directory = directory
        self._happen = happen

    def __fspath__(self) -> str:
        if not self.was_asked:
            self.was_asked = True
            self._happen()
        return str(self._directory)


class TestPrune:
    def test_prune_deletes_sessions_idle_for_ninety_days(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "old")
        clock.advance(60 * DAY_S)
        start_ended(store, "new")
        clock.advance(31 * DAY_S)
        assert store.prune_sessions() == 1
        assert known(store) == {"new"}

    @pytest.mark.parametrize(("age_days", "pruned"), [(29.9, 0), (30.1, 1)])
    def test_prune_uses_the_given_number_of_days(
        self, store: SessionDBProvider, clock: FakeClock, age_days: float, pruned: int
    ) -> None:
        start_ended(store, "s")
        clock.advance(age_days * DAY_S)
        assert store.prune_sessions(older_than_days=30) == pruned

    def test_prune_uses_last_activity_not_the_start(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        clock.advance(95 * DAY_S)
        say(store, "s", "still here")
        store.end_session("s", "user_exit")
        clock.advance(DAY_S)
        assert store.prune_sessions() == 0

    def test_prune_leaves_open_sessions(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        clock.advance(100 * DAY_S)
        assert store.prune_sessions() == 0

    def test_prune_deletes_stale_open_sessions_on_request(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        clock.advance(100 * DAY_S)
        assert store.prune_sessions(include_open=True) == 1

    def test_prune_never_deletes_pinned_sessions(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "s")
        store.set_session_pinned("s")
        clock.advance(1000 * DAY_S)
        assert store.prune_sessions(include_open=True) == 0

    def test_prune_deletes_archived_and_titled_sessions(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "archived", "titled")
        store.set_session_archived("archived")
        store.set_session_title("titled", "Title")
        clock.advance(100 * DAY_S)
        assert store.prune_sessions() == 2

    def test_prune_can_be_limited_to_one_source(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "cli")
        start_ended(store, "telegram", source="telegram")
        clock.advance(100 * DAY_S)
        store.prune_sessions(source="telegram")
        assert known(store) == {"cli"}

    def test_prune_leaves_no_delegate_behind(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "parent")
        start(store, "helper", parent_session_id="parent", child_kind="delegate")
        clock.advance(100 * DAY_S)
        store.prune_sessions()
        assert known(store) == set()

    def test_prune_keeps_the_start_of_an_active_conversation(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        say(store, "root", "before")
        compress(store, clock, "root", "tip")
        clock.advance(100 * DAY_S)
        say(store, "tip", "after")
        store.prune_sessions()
        assert len(store.get_messages_as_conversation("tip", include_ancestors=True)) == 2

    def test_list_prunable_has_the_longest_idle_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for session_id in ("c", "a", "b"):
            start_ended(store, session_id)
            clock.advance(DAY_S)
        start_ended(store, "new")
        clock.advance(89 * DAY_S)
        assert store.list_prunable() == ["c", "a"]

    def test_prune_deletes_exactly_the_listed_sessions(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "a", "b")
        start(store, "open")
        clock.advance(100 * DAY_S)
        start_ended(store, "new")
        listed = set(store.list_prunable())
        before = known(store)
        store.prune_sessions()
        assert before - known(store) == listed == {"a", "b"}

    def test_prune_of_zero_days_deletes_all_ended_sessions(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_ended(store, "a")
        clock.advance(1)
        start_ended(store, "b")
        store.prune_sessions(older_than_days=0)
        assert known(store) == {"b"}

    def test_prune_deletes_more_than_one_slice(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, *(f"s{number}" for number in range(410)))
        clock.advance(100 * DAY_S)
        assert store.prune_sessions(include_open=True) == 410

    def test_prune_keeps_a_session_that_becomes_active_meanwhile(
        self, store: SessionDBProvider, clock: FakeClock, tmp_path: Path
    ) -> None:
        start(store, *(f"s{number:03}" for number in range(410)))
        clock.advance(100 * DAY_S)
        directory = WhileFilesAreRemoved(tmp_path, lambda: say(store, "s409", "still here"))
        store.prune_sessions(sessions_dir=directory.path, include_open=True)
        assert directory.was_asked
        assert known(store) == {"s409"}


class TestGhosts:
    def ghost(self, store: SessionDBProvider, session_id: str = "ghost") -> None:
        start(store, session_id, source="tui")
        store.end_session(session_id, "tui_close")

    def test_ghosts_are_deleted_after_a_day(self, store: SessionDBProvider, clock: FakeClock) -> None:
        self.ghost(store)
        clock.advance(DAY_S + 1)
        assert store.prune_empty_ghost_sessions() == 1

    def test_ghosts_stay_for_a_day(self, store: SessionDBProvider, clock: FakeClock) -> None:
        self.ghost(store)
        clock.advance(DAY_S - 1)
        assert store.prune_empty_ghost_sessions() == 0

    def test_ghosts_with_a_child_are_deleted_without_the_child(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        self.ghost(store)
        self.ghost(store, "another")
        start(store, "child", parent_session_id="ghost", child_kind="branch")
        clock.advance(DAY_S + 1)
        assert store.prune_empty_ghost_sessions() == 2
        assert known(store) == {"child"}

    def test_ghosts_are_never_titled_nonempty_open_or_of_other_sources(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "titled", "full", "open", source="tui")
        start(store, "cli")
        store.set_session_title("titled", "Title")
        say(store, "full", "x")
        for session_id in ("titled", "full", "cli"):
            store.end_session(session_id, "tui_close")
        clock.advance(DAY_S + 1)
        assert store.prune_empty_ghost_sessions() == 0


class TestOrphanedContinuations:
    def orphan(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        compress(store, clock, "root", "orphan")
        say(store, "orphan", "summary", role="assistant")

    def test_orphaned_continuations_are_ended_after_a_week(self, store: SessionDBProvider, clock: FakeClock) -> None:
        self.orphan(store, clock)
        clock.advance(7 * DAY_S + 1)
        assert store.finalize_orphaned_compression_sessions() == 1
        row = session_of(store, "orphan")
        assert (row["end_reason"], row["ended_at"]) == ("orphaned_compression", NOW + 7 * DAY_S + 2)

    def test_orphaned_continuations_stay_open_for_a_week(self, store: SessionDBProvider, clock: FakeClock) -> None:
        self.orphan(store, clock)
        clock.advance(7 * DAY_S - 1)
        assert store.finalize_orphaned_compression_sessions() == 0

    def test_used_continuations_are_not_ended(self, store: SessionDBProvider, clock: FakeClock) -> None:
        self.orphan(store, clock)
        store.update_token_counts("orphan", api_call_count=1)
        clock.advance(8 * DAY_S)
        assert store.finalize_orphaned_compression_sessions() == 0

    def test_old_branches_are_not_ended(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "root")
        start(store, "branch", parent_session_id="root", child_kind="branch")
        say(store, "branch", "x")
        clock.advance(8 * DAY_S)
        assert store.finalize_orphaned_compression_sessions() == 0

    def test_orphaned_continuations_are_not_deleted(self, store: SessionDBProvider, clock: FakeClock) -> None:
        self.orphan(store, clock)
        clock.advance(8 * DAY_S)
        store.finalize_orphaned_compression_sessions()
        assert known(store) == {"root", "orphan"}
