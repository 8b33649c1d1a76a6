"""Meta values, compression locks and handoffs."""

from __future__ import annotations

import pytest

from hermes.state.provider import SessionDBProvider
from hermes_state import SCHEMA_VERSION
from tests.support.clock import FakeClock
from tests.support.conversations import at_once, ids, start
from tests.support.stores import Opener


def test_schema_version_is_returned(store: SessionDBProvider) -> None:
    assert store.schema_version() == SCHEMA_VERSION


class TestMeta:
    def test_unknown_meta_key_is_none(self, store: SessionDBProvider) -> None:
        assert store.get_meta("nothing") is None

    @pytest.mark.parametrize(
        "value", ["x", "", "a\0b", "\ud800", "\x01json:[1]", "\x00json:[1]", "世界", None], ids=ascii
    )
    def test_meta_value_round_trips_exactly(self, store: SessionDBProvider, value: str | None) -> None:
        store.set_meta("key", value)
        assert store.get_meta("key") == value

    def test_newer_meta_value_replaces_the_older(self, store: SessionDBProvider) -> None:
        store.set_meta("key", "old")
        store.set_meta("key", "new")
        assert store.get_meta("key") == "new"

    def test_meta_keys_differ_by_case(self, store: SessionDBProvider) -> None:
        store.set_meta("key", "x")
        assert store.get_meta("KEY") is None

    def test_meta_value_is_still_there_after_reopening(self, open_store: Opener) -> None:
        with open_store() as first:
            first.set_meta("key", "x")
        assert open_store().get_meta("key") == "x"


class TestCompressionLock:
    def test_first_caller_gets_the_lock(self, store: SessionDBProvider) -> None:
        assert store.try_acquire_compression_lock("s", "me")
        assert store.get_compression_lock_holder("s") == "me"

    def test_second_caller_does_not_get_the_lock(self, store: SessionDBProvider) -> None:
        store.try_acquire_compression_lock("s", "me")
        assert not store.try_acquire_compression_lock("s", "you")
        assert store.get_compression_lock_holder("s") == "me"

    def test_compression_locks_of_two_sessions_are_independent(self, store: SessionDBProvider) -> None:
        store.try_acquire_compression_lock("a", "me")
        assert store.try_acquire_compression_lock("b", "you")

    def test_lock_has_no_holder_at_first(self, store: SessionDBProvider) -> None:
        assert store.get_compression_lock_holder("s") is None

    def test_released_lock_is_free(self, store: SessionDBProvider) -> None:
        store.try_acquire_compression_lock("s", "me")
        store.release_compression_lock("s", "me")
        assert store.try_acquire_compression_lock("s", "you")

    def test_lock_of_another_holder_cannot_be_released(self, store: SessionDBProvider) -> None:
        store.try_acquire_compression_lock("s", "me")
        store.release_compression_lock("s", "you")
        assert store.get_compression_lock_holder("s") == "me"

    def test_compression_lock_is_held_for_five_minutes(self, store: SessionDBProvider, clock: FakeClock) -> None:
        store.try_acquire_compression_lock("s", "me")
        clock.advance(299)
        assert not store.try_acquire_compression_lock("s", "you")

    def test_compression_lock_expires_after_five_minutes(self, store: SessionDBProvider, clock: FakeClock) -> None:
        store.try_acquire_compression_lock("s", "me")
        clock.advance(301)
        assert store.get_compression_lock_holder("s") is None
        assert store.try_acquire_compression_lock("s", "you")

    def test_compression_lock_expires_after_its_ttl(self, store: SessionDBProvider, clock: FakeClock) -> None:
        store.try_acquire_compression_lock("s", "me", ttl_seconds=10)
        clock.advance(11)
        assert store.try_acquire_compression_lock("s", "you")

    def test_lock_acquired_again_by_its_holder_is_held_longer(self, store: SessionDBProvider, clock: FakeClock) -> None:
        store.try_acquire_compression_lock("s", "me", ttl_seconds=10)
        clock.advance(9)
        assert store.try_acquire_compression_lock("s", "me", ttl_seconds=10)
        clock.advance(9)
        assert store.get_compression_lock_holder("s") == "me"

    def test_renewed_lock_is_held_longer(self, store: SessionDBProvider, clock: FakeClock) -> None:
        store.try_acquire_compression_lock("s", "me", ttl_seconds=10)
        clock.advance(9)
        assert store.renew_compression_lock("s", "me", ttl_seconds=10)
        clock.advance(9)
        assert store.get_compression_lock_holder("s") == "me"

    def test_lost_lock_cannot_be_renewed(self, store: SessionDBProvider, clock: FakeClock) -> None:
        store.try_acquire_compression_lock("s", "me", ttl_seconds=10)
        clock.advance(11)
        assert not store.renew_compression_lock("s", "me")

    def test_lock_of_another_holder_cannot_be_renewed(self, store: SessionDBProvider) -> None:
        store.try_acquire_compression_lock("s", "me")
        assert not store.renew_compression_lock("s", "you")

    def test_lock_without_a_holder_cannot_be_renewed(self, store: SessionDBProvider) -> None:
        assert not store.renew_compression_lock("s", "me")

    def test_compression_lock_without_a_session_is_refused(self, store: SessionDBProvider) -> None:
        assert not store.try_acquire_compression_lock("", "me")

    def test_eight_threads_racing_for_a_lock_have_one_winner(self, store: SessionDBProvider) -> None:
        won = at_once(8, lambda n: store.try_acquire_compression_lock("s", f"holder {n}"))
        assert sum(won) == 1
        assert store.get_compression_lock_holder("s") == f"holder {won.index(True)}"

    def test_eight_handles_racing_for_a_lock_have_one_winner(self, open_store: Opener) -> None:
        handles = [open_store() for _ in range(8)]
        assert sum(at_once(8, lambda n: handles[n].try_acquire_compression_lock("s", f"holder {n}"))) == 1


class TestHandoff:
    @pytest.fixture
    def pending(self, store: SessionDBProvider) -> SessionDBProvider:
        start(store, "s")
        store.request_handoff("s", "telegram")
        return store

    def test_session_without_a_handoff_has_no_state(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.get_handoff_state("s") == {"state": None, "platform": None, "error": None}

    def test_requested_handoff_is_pending(self, pending: SessionDBProvider) -> None:
        assert pending.get_handoff_state("s") == {"state": "pending", "platform": "telegram", "error": None}

    def test_pending_handoff_cannot_be_requested_again(self, pending: SessionDBProvider) -> None:
        assert not pending.request_handoff("s", "discord")

    def test_pending_handoff_is_claimed_once(self, pending: SessionDBProvider) -> None:
        assert [pending.claim_handoff("s"), pending.claim_handoff("s")] == [True, False]

    def test_eight_claimants_of_a_handoff_have_one_winner(self, pending: SessionDBProvider) -> None:
        assert sum(at_once(8, lambda _: pending.claim_handoff("s"))) == 1

    def test_claimed_handoff_is_running(self, pending: SessionDBProvider) -> None:
        pending.claim_handoff("s")
        assert pending.get_handoff_state("s") == {"state": "running", "platform": "telegram", "error": None}

    def test_running_handoff_cannot_be_requested(self, pending: SessionDBProvider) -> None:
        pending.claim_handoff("s")
        assert not pending.request_handoff("s", "discord")

    def test_completed_handoff_has_its_state(self, pending: SessionDBProvider) -> None:
        pending.claim_handoff("s")
        assert pending.complete_handoff("s")
        assert pending.get_handoff_state("s") == {"state": "completed", "platform": "telegram", "error": None}

    def test_failed_handoff_has_its_error(self, pending: SessionDBProvider) -> None:
        pending.claim_handoff("s")
        assert pending.fail_handoff("s", "no such \0 chat")
        assert pending.get_handoff_state("s") == {"state": "failed", "platform": "telegram", "error": "no such \0 chat"}

    def test_handoff_error_is_cut_at_500_characters(self, pending: SessionDBProvider) -> None:
        pending.fail_handoff("s", "x" * 501)
        state = pending.get_handoff_state("s")
        assert state is not None
        assert state["error"] == "x" * 500

    def test_failed_handoff_can_be_requested_again_without_its_error(self, pending: SessionDBProvider) -> None:
        pending.fail_handoff("s", "why")
        assert pending.request_handoff("s", "discord")
        assert pending.get_handoff_state("s") == {"state": "pending", "platform": "discord", "error": None}

    def test_completed_handoff_can_be_requested_again(self, pending: SessionDBProvider) -> None:
        pending.complete_handoff("s")
        assert pending.request_handoff("s", "discord")

    def test_handoff_without_request_cannot_be_claimed(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert not store.claim_handoff("s")

    def test_pending_handoffs_are_listed_oldest_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for session_id in ("c", "a", "b", "quiet"):
            start(store, session_id)
            clock.advance(1)
        for session_id in ("b", "a", "c"):
            store.request_handoff(session_id, "telegram")
        store.claim_handoff("a")
        assert ids(store.list_pending_handoffs()) == ["c", "b"]

    def test_handoff_of_an_unknown_session_has_no_state(self, store: SessionDBProvider) -> None:
        assert store.get_handoff_state("missing") is None
