"""Entries that callers change, the documented internal helpers, and the work in the background."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from hermes.gateway import GatewayConfig, Platform, SessionEntry, SessionResetPolicy, SessionSource
from tests.gateway.store.conftest import MakeStore
from tests.gateway.store.database import Database, Time

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7")
KEY = "agent:main:telegram:dm:1"
IDLE = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="idle", idle_minutes=60))
NEVER = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="none"))


def local(moment: float) -> datetime:
    return datetime.fromtimestamp(moment)  # noqa: DTZ006


@pytest.fixture(params=["database", "files"], autouse=True)
def place(request: pytest.FixtureRequest, database: Database) -> str:
    database.is_down = request.param == "files"
    return str(request.param)


def test_changed_entry_is_stored_before_the_lane_is_used_again(make_store: MakeStore, time: Time) -> None:
    store = make_store(IDLE)
    entry = store.get_or_create_session(ALICE)
    entry.updated_at -= timedelta(hours=2)
    entry.total_tokens = 5000
    again = store.get_or_create_session(ALICE)
    assert (again.auto_reset_reason, again.reset_had_activity) == ("idle", True)


def test_saved_entry_is_seen_by_other_stores(make_store: MakeStore) -> None:
    store, other = make_store(NEVER), make_store(NEVER)
    entry = store.get_or_create_session(ALICE)
    assert store.save(entry) is False
    entry.suspended = True
    assert store.save(entry) is True
    seen = other.peek(ALICE)
    assert seen is not None
    assert seen.suspended is True


def test_only_the_changed_fields_of_an_entry_are_stored(make_store: MakeStore) -> None:
    store, other = make_store(NEVER), make_store(NEVER)
    entry = store.get_or_create_session(ALICE)
    other.update_session(KEY, 77)
    entry.is_fresh_reset = True
    store.save(entry)
    seen = other.peek(ALICE)
    assert seen is not None
    assert (seen.is_fresh_reset, seen.last_prompt_tokens) == (True, 77)


def test_entries_are_a_mapping_over_the_lanes(make_store: MakeStore) -> None:
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    assert len(store._entries) == 1
    assert KEY in store._entries
    assert dict(store._entries) == {KEY: first}
    store._entries[KEY].suspended = True
    assert store._entries[KEY].suspended is True
    assert store.get_or_create_session(ALICE).auto_reset_reason == "suspended"
    assert "nowhere" not in store._entries


def test_entry_can_be_set_by_its_key(make_store: MakeStore, time: Time) -> None:
    store = make_store(NEVER)
    moment = local(time.now - 30)
    entry = SessionEntry("k", "20260101_000000_00000001", moment, moment, platform=Platform.SLACK, suspended=True)
    store._entries["k"] = entry
    assert store.list_sessions() == [entry]
    entry.suspended = False
    store._save()
    assert store._entries["k"].suspended is False


def test_entry_that_was_set_shows_later_changes(make_store: MakeStore, time: Time) -> None:
    store = make_store(NEVER)
    moment = local(time.now - 30)
    entry = SessionEntry("k", "20260101_000000_00000001", moment, moment)
    store._entries = {"k": entry}
    store.update_session("k", last_prompt_tokens=42)
    assert (entry.last_prompt_tokens, entry.updated_at) == (42, local(time.now))
    assert store.suspend_recently_active() == 1
    assert entry.resume_pending is True
    store._entries = {}
    assert store.list_sessions() == []


def test_helpers_apply_the_policy(make_store: MakeStore, time: Time) -> None:
    store = make_store(IDLE)
    entry = store.get_or_create_session(ALICE)
    assert store._generate_session_key(ALICE) == KEY
    assert store._should_reset(entry, ALICE) is None
    assert store._is_session_expired(entry) is False
    time.pass_(minutes=61)
    assert store._should_reset(entry, ALICE) == "idle"
    assert store._is_session_expired(entry) is True


def test_expired_lanes_are_found_until_they_are_finalized(make_store: MakeStore, time: Time) -> None:
    config = GatewayConfig(
        default_reset_policy=SessionResetPolicy(mode="idle", idle_minutes=60),
        reset_by_platform={Platform.SLACK: SessionResetPolicy(mode="none")},
    )
    store = make_store(config)
    store.get_or_create_session(ALICE)
    store.get_or_create_session(SessionSource(Platform.SLACK, "2"))
    time.pass_(minutes=61)
    store.get_or_create_session(SessionSource(Platform.TELEGRAM, "3"))
    (entry,) = store.expired_entries()
    assert entry.session_key == KEY
    store.set_expiry_finalized(entry)
    assert list(store.expired_entries()) == []
    seen = store.peek(ALICE)
    assert seen is not None
    assert seen.expiry_finalized is True
    assert seen.updated_at == local(time.now - 61 * 60)


def test_session_that_began_during_the_finalization_is_not_finalized(make_store: MakeStore, time: Time) -> None:
    store = make_store(IDLE)
    store.get_or_create_session(ALICE)
    time.pass_(minutes=61)
    (expired,) = store.expired_entries()
    fresh = store.get_or_create_session(ALICE)
    store.set_expiry_finalized(expired)
    time.pass_(minutes=61)
    assert [entry.session_id for entry in store.expired_entries()] == [fresh.session_id]


def test_session_that_was_used_during_the_finalization_is_not_finalized(make_store: MakeStore, time: Time) -> None:
    store = make_store(IDLE)
    first = store.get_or_create_session(ALICE)
    time.pass_(minutes=61)
    (expired,) = store.expired_entries()
    store.mark_resume_pending(KEY)
    assert store.get_or_create_session(ALICE).session_id == first.session_id
    store.set_expiry_finalized(expired)
    store.clear_resume_pending(KEY)
    time.pass_(minutes=61)
    assert [entry.session_id for entry in store.expired_entries()] == [first.session_id]


def test_finalized_session_that_is_used_again_is_finalized_again(make_store: MakeStore, time: Time) -> None:
    store = make_store(IDLE)
    store.get_or_create_session(ALICE)
    time.pass_(minutes=61)
    (expired,) = store.expired_entries()
    store.set_expiry_finalized(expired)
    store.update_session(KEY)
    time.pass_(minutes=61)
    assert [entry.session_key for entry in store.expired_entries()] == [KEY]


def test_entry_of_a_left_session_changes_nothing_in_the_next_one(make_store: MakeStore) -> None:
    store, other = make_store(NEVER), make_store(NEVER)
    entry = store.get_or_create_session(ALICE)
    other.reset_session(KEY)
    entry.suspended = True
    store.save(entry)
    seen = other.peek(ALICE)
    assert seen is not None
    assert (seen.suspended, seen.is_fresh_reset) == (False, True)


def test_restarts_that_two_stores_count_at_once_all_count(make_store: MakeStore) -> None:
    stores = [make_store(NEVER), make_store(NEVER)]
    stores[0].get_or_create_session(ALICE)
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda store: store.count_restart(KEY), stores))
    assert sorted(counts) == [1, 2]


def test_lanes_that_continue_by_themselves(make_store: MakeStore, time: Time) -> None:
    store = make_store(NEVER)
    keys = [store.get_or_create_session(SessionSource(Platform.SLACK, name)).session_key for name in "abcd"]
    store.mark_resume_pending(keys[0], "restart_timeout")
    store.mark_resume_pending(keys[1], "some other reason")
    time.pass_(minutes=59)
    store.mark_resume_pending(keys[2], "shutdown_timeout")
    time.pass_(minutes=2)
    assert [entry.session_key for entry in store.resume_candidates()] == [keys[2]]
    store.update_session(keys[2])
    assert [entry.session_key for entry in store.resume_candidates(0)] == [keys[2], keys[0]]
    assert store.resume_candidates(platform=Platform.TELEGRAM) == []


def test_third_restart_in_a_row_suspends_a_lane(make_store: MakeStore) -> None:
    store = make_store(NEVER)
    store.get_or_create_session(ALICE)
    assert store.count_restart(KEY) == 1
    store.clear_restart_count(KEY)
    assert [store.count_restart(KEY) for _ in range(2)] == [1, 2]
    seen = store.peek(ALICE)
    assert seen is not None
    assert seen.suspended is False
    assert store.count_restart(KEY) == 3
    assert store.get_or_create_session(ALICE).auto_reset_reason == "suspended"
    assert store.count_restart("nowhere") == 0
