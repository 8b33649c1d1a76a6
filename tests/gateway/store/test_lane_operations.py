"""The operations of a session store: states, priorities, return values; with and without a database."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

import pytest

from hermes.errors import UnknownSession
from hermes.gateway import GatewayConfig, Platform, SessionEntry, SessionResetPolicy, SessionSource, SessionStore
from tests.gateway.store.conftest import MakeStore
from tests.gateway.store.database import Database, Time
from tests.support.zones import BERLIN, local_zone

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7", user_name="Alice", chat_name="Alice B")
KEY = "agent:main:telegram:dm:1"
NEVER = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="none"))
IDLE = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="idle", idle_minutes=60))
AnyStore = Callable[..., SessionStore]


def local(moment: float) -> datetime:
    return datetime.fromtimestamp(moment)  # noqa: DTZ006


def test_first_message_creates_a_session(any_store: AnyStore, time: Time) -> None:
    entry = any_store().get_or_create_session(ALICE)
    assert re.fullmatch(r"\d{8}_\d{6}_[0-9a-f]{8}", entry.session_id)
    now = local(time.now)
    expected = SessionEntry(KEY, entry.session_id, now, now, ALICE, "Alice B", Platform.TELEGRAM, "dm")
    assert entry == expected


def test_second_message_keeps_the_session_and_touches_it(any_store: AnyStore, time: Time) -> None:
    store = any_store(NEVER)
    first = store.get_or_create_session(ALICE)
    time.pass_(days=30)
    second = store.get_or_create_session(ALICE)
    assert second.session_id == first.session_id
    assert (second.created_at, second.updated_at) == (first.created_at, local(time.now))


def test_origin_is_that_of_the_first_message(any_store: AnyStore) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    again = store.get_or_create_session(SessionSource(Platform.TELEGRAM, "1", user_id="7", message_id="55"))
    assert again.origin == ALICE


def test_suspended_lane_gets_a_new_session_even_if_it_waits_for_a_resume(any_store: AnyStore) -> None:
    store = any_store(NEVER)
    first = store.get_or_create_session(ALICE)
    assert store.mark_resume_pending(KEY)
    assert store.suspend_session(KEY)
    entry = store.get_or_create_session(ALICE)
    assert entry.session_id != first.session_id
    assert (entry.was_auto_reset, entry.auto_reset_reason) == (True, "suspended")
    assert (entry.suspended, entry.resume_pending) == (False, False)


def test_resume_pending_keeps_the_session_although_it_expired(any_store: AnyStore, time: Time) -> None:
    store = any_store(IDLE)
    first = store.get_or_create_session(ALICE)
    store.mark_resume_pending(KEY, "shutdown_timeout")
    time.pass_(days=3)
    entry = store.get_or_create_session(ALICE)
    assert entry.session_id == first.session_id
    assert (entry.resume_pending, entry.resume_reason) == (True, "shutdown_timeout")
    assert entry.updated_at == local(time.now)


def test_expired_lane_gets_a_new_session(any_store: AnyStore, time: Time) -> None:
    store = any_store(IDLE)
    first = store.get_or_create_session(ALICE)
    time.pass_(minutes=61)
    entry = store.get_or_create_session(ALICE)
    assert entry.session_id != first.session_id
    assert (entry.was_auto_reset, entry.auto_reset_reason, entry.reset_had_activity) == (True, "idle", False)
    assert entry.is_fresh_reset is False
    assert entry.created_at == entry.updated_at == local(time.now)


def test_reset_knows_that_the_old_session_had_messages(any_store: AnyStore, time: Time) -> None:
    store = any_store(IDLE)
    first = store.get_or_create_session(ALICE)
    store.append_to_transcript(first.session_id, {"role": "user", "content": "hi"})
    time.pass_(minutes=61)
    assert store.get_or_create_session(ALICE).reset_had_activity is True


def test_daily_reset_uses_the_configured_zone(any_store: AnyStore, time: Time) -> None:
    time.now = datetime.fromisoformat("2026-06-10T03:50:00+02:00").timestamp()
    policy = SessionResetPolicy(mode="daily", at_hour=4)
    store = any_store(GatewayConfig(default_reset_policy=policy, timezone="Europe/Berlin"))
    first = store.get_or_create_session(ALICE)
    time.pass_(minutes=5)
    assert store.get_or_create_session(ALICE).session_id == first.session_id
    time.pass_(minutes=6)
    assert store.get_or_create_session(ALICE).auto_reset_reason == "daily"


def test_lane_with_processes_never_expires(any_store: AnyStore, time: Time) -> None:
    asked: list[str] = []

    def has_processes(key: str) -> bool:
        asked.append(key)
        return True

    store = any_store(IDLE, has_active_processes_fn=has_processes)
    first = store.get_or_create_session(ALICE)
    time.pass_(days=3)
    assert store.get_or_create_session(ALICE).session_id == first.session_id
    assert set(asked) == {KEY}
    store.suspend_session(KEY)
    assert store.get_or_create_session(ALICE).auto_reset_reason == "suspended"


def test_failing_process_check_keeps_the_session(any_store: AnyStore, time: Time) -> None:
    def fail(key: str) -> bool:
        raise RuntimeError(key)

    store = any_store(IDLE, has_active_processes_fn=fail)
    first = store.get_or_create_session(ALICE)
    time.pass_(days=3)
    assert store.get_or_create_session(ALICE).session_id == first.session_id


def test_forced_session_is_new_and_without_marks(any_store: AnyStore) -> None:
    store = any_store()
    first = store.get_or_create_session(ALICE)
    entry = store.get_or_create_session(ALICE, force_new=True)
    assert entry.session_id != first.session_id
    assert (entry.was_auto_reset, entry.is_fresh_reset, entry.auto_reset_reason) == (False, False, None)


def test_policy_of_the_platform_is_used(any_store: AnyStore, time: Time) -> None:
    config = GatewayConfig(
        default_reset_policy=SessionResetPolicy(mode="idle", idle_minutes=1),
        reset_by_platform={Platform.TELEGRAM: SessionResetPolicy(mode="none")},
    )
    store = any_store(config)
    first = store.get_or_create_session(ALICE)
    time.pass_(days=3)
    assert store.get_or_create_session(ALICE).session_id == first.session_id


def test_update_touches_and_counts_tokens(any_store: AnyStore, time: Time) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    time.pass_(minutes=1)
    store.update_session(KEY, last_prompt_tokens=500)
    entry = store.peek(ALICE)
    assert entry is not None
    assert (entry.last_prompt_tokens, entry.updated_at) == (500, local(time.now))
    store.update_session(KEY)
    store.update_session(KEY, 0)
    entry = store.peek(ALICE)
    assert entry is not None
    assert entry.last_prompt_tokens == 0


def test_update_of_an_unknown_lane_does_nothing(any_store: AnyStore) -> None:
    store = any_store()
    store.update_session("agent:main:nowhere", 5)
    assert store.list_sessions() == []


def test_peek_changes_nothing(any_store: AnyStore, time: Time) -> None:
    store = any_store(IDLE)
    assert store.peek(ALICE) is None
    first = store.get_or_create_session(ALICE)
    time.pass_(days=3)
    assert store.peek(ALICE) == first
    assert store.peek(ALICE) == first


def test_reset_starts_a_new_session_with_the_description_of_the_lane(any_store: AnyStore, time: Time) -> None:
    store = any_store()
    first = store.get_or_create_session(ALICE)
    store.suspend_session(KEY)
    store.update_session(KEY, 99)
    time.pass_(minutes=1)
    entry = store.reset_session(KEY)
    assert entry is not None
    assert entry.session_id != first.session_id
    now = local(time.now)
    assert entry == SessionEntry(
        KEY, entry.session_id, now, now, ALICE, "Alice B", Platform.TELEGRAM, "dm", is_fresh_reset=True
    )
    assert store.get_or_create_session(ALICE).session_id == entry.session_id


def test_reset_can_rename_the_lane(any_store: AnyStore) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    entry = store.reset_session(KEY, display_name="Other")
    assert entry is not None
    assert entry.display_name == "Other"


@pytest.mark.parametrize(
    "operation", ["reset_session", "suspend_session", "mark_resume_pending", "clear_resume_pending"]
)
def test_unknown_lane_is_reported(any_store: AnyStore, operation: str) -> None:
    assert not getattr(any_store(), operation)("agent:main:nowhere")


def test_empty_key_and_odd_session_are_unknown(any_store: Callable[..., SessionStore]) -> None:
    store = any_store()
    store.update_session("")
    assert (store.reset_session(""), store.switch_session("", "x")) == (None, None)
    assert (store.suspend_session(""), store.mark_resume_pending(""), store.clear_resume_pending("")) == (False,) * 3
    assert [store.lookup_by_session_id(odd) for odd in ("", "a\0b", "\ud800")] == [None, None, None]
    assert store.list_sessions() == []


def test_enormous_names_do_not_stop_a_chat(any_store: Callable[..., SessionStore]) -> None:
    source = SessionSource(Platform.SLACK, "1", chat_name="n" * 2_000_000, chat_topic="t" * 2_000_000, user_name="u")
    entry = any_store().get_or_create_session(source)
    assert entry.origin is not None
    assert (len(entry.origin.chat_name or ""), len(entry.origin.chat_topic or "")) == (32_768, 32_768)
    assert entry.origin.user_name == "u"


def test_switch_of_an_unknown_lane_returns_none(any_store: AnyStore) -> None:
    assert any_store().switch_session("agent:main:nowhere", "x") is None


def test_switch_to_the_same_session_changes_nothing(any_store: AnyStore, time: Time) -> None:
    store = any_store()
    first = store.get_or_create_session(ALICE)
    time.pass_(minutes=5)
    assert store.switch_session(KEY, first.session_id) == first


def test_switch_continues_another_session(make_store: MakeStore, time: Time) -> None:
    store = make_store()
    first = store.get_or_create_session(ALICE)
    second = store.reset_session(KEY)
    assert second is not None
    store.suspend_session(KEY)
    time.pass_(minutes=5)
    entry = store.switch_session(KEY, first.session_id)
    assert entry is not None
    now = local(time.now)
    assert entry == SessionEntry(KEY, first.session_id, now, now, ALICE, "Alice B", Platform.TELEGRAM, "dm")
    db = store._db
    assert db is not None
    left, continued = db.get_session(second.session_id), db.get_session(first.session_id)
    assert left is not None
    assert continued is not None
    assert left["end_reason"] == "session_switch"
    assert (continued["ended_at"], continued["end_reason"]) == (None, None)


def test_switch_to_a_missing_session_is_refused(make_store: MakeStore) -> None:
    store = make_store()
    first = store.get_or_create_session(ALICE)
    with pytest.raises(UnknownSession):
        store.switch_session(KEY, "20200101_000000_ffffffff")
    entry = store.peek(ALICE)
    assert entry is not None
    assert entry.session_id == first.session_id


def test_switch_checks_the_owner(make_store: MakeStore) -> None:
    store = make_store()
    store.get_or_create_session(ALICE)
    bobs = store.get_or_create_session(SessionSource(Platform.TELEGRAM, "2", user_id="8"))
    with pytest.raises(UnknownSession):
        store.switch_session(KEY, bobs.session_id, owner="telegram:7")
    assert store.switch_session("agent:main:telegram:dm:2", bobs.session_id, owner="telegram:8") is not None


def test_resume_mark_is_not_set_on_a_suspended_lane(any_store: AnyStore) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    store.suspend_session(KEY)
    assert store.mark_resume_pending(KEY) is False
    entry = store.peek(ALICE)
    assert entry is not None
    assert (entry.suspended, entry.resume_pending, entry.resume_reason) == (True, False, None)


def test_resume_mark_has_reason_and_time_and_is_refreshed(any_store: AnyStore, time: Time) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    assert store.mark_resume_pending(KEY) is True
    time.pass_(minutes=1)
    assert store.mark_resume_pending(KEY, reason="shutdown_timeout") is True
    entry = store.peek(ALICE)
    assert entry is not None
    assert (entry.resume_reason, entry.last_resume_marked_at) == ("shutdown_timeout", local(time.now))


def test_default_reason_of_a_resume_mark(any_store: AnyStore) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    store.mark_resume_pending(KEY)
    entry = store.peek(ALICE)
    assert entry is not None
    assert entry.resume_reason == "restart_timeout"


def test_resume_mark_is_cleared_once(any_store: AnyStore) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    store.mark_resume_pending(KEY)
    assert store.clear_resume_pending(KEY) is True
    assert store.clear_resume_pending(KEY) is False
    entry = store.peek(ALICE)
    assert entry is not None
    assert (entry.resume_pending, entry.resume_reason, entry.last_resume_marked_at) == (False, None, None)


def test_recently_active_lanes_are_marked_after_a_crash(any_store: AnyStore, time: Time) -> None:
    store = any_store(NEVER)
    sources = {name: SessionSource(Platform.SLACK, name, user_id="u") for name in ("old", "edge", "done", "off", "new")}
    keys = {name: store.get_or_create_session(sources[name]).session_key for name in sources}
    store.mark_resume_pending(keys["done"], "shutdown_timeout")
    marked_at = time.now
    time.pass_(seconds=60)
    store.get_or_create_session(sources["edge"])
    time.pass_(seconds=120)
    for name in ("done", "off", "new"):
        store.get_or_create_session(sources[name])
    store.suspend_session(keys["off"])
    assert store.suspend_recently_active() == 2
    found = {name: store.peek(source) for name, source in sources.items()}
    reasons = {name: entry and entry.resume_reason for name, entry in found.items()}
    assert reasons == {
        "old": None,
        "edge": "restart_interrupted",
        "done": "shutdown_timeout",
        "off": None,
        "new": "restart_interrupted",
    }
    assert found["new"] is not None
    assert found["new"].last_resume_marked_at == local(time.now)
    assert found["done"] is not None
    assert found["done"].last_resume_marked_at == local(marked_at)
    assert store.suspend_recently_active() == 0


def test_age_of_recently_active_lanes_can_be_given(any_store: AnyStore, time: Time) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    time.pass_(seconds=10)
    assert store.suspend_recently_active(max_age_seconds=9) == 0
    assert store.suspend_recently_active(max_age_seconds=10) == 1


def test_lists_are_sorted_and_filtered_by_activity(any_store: AnyStore, time: Time) -> None:
    store = any_store()
    for chat in ("a", "b", "c"):
        store.get_or_create_session(SessionSource(Platform.SLACK, chat))
        time.pass_(minutes=10)
    store.update_session("agent:main:slack:dm:a")
    assert [entry.session_key[-1] for entry in store.list_sessions()] == ["a", "c", "b"]
    assert [entry.session_key[-1] for entry in store.list_sessions(active_minutes=10)] == ["a", "c"]
    assert [entry.session_key[-1] for entry in store.list_sessions(active_minutes=9)] == ["a"]


def test_list_of_many_lanes_is_complete(any_store: AnyStore, time: Time) -> None:
    store = any_store()
    for number in range(30):
        time.pass_(seconds=number % 2)
        store.get_or_create_session(SessionSource(Platform.SLACK, str(number)))
    assert len({entry.session_key for entry in store.list_sessions()}) == 30


def test_lane_is_found_by_its_session(any_store: AnyStore) -> None:
    store = any_store()
    first = store.get_or_create_session(ALICE)
    assert store.lookup_by_session_id(first.session_id) == first
    assert store.lookup_by_session_id("") is None
    assert store.lookup_by_session_id("x") is None
    second = store.reset_session(KEY)
    assert second is not None
    assert store.lookup_by_session_id(first.session_id) is None
    assert store.lookup_by_session_id(second.session_id) == second


def test_first_session_is_not_counted_as_any(any_store: AnyStore) -> None:
    store = any_store()
    assert store.has_any_sessions() is False
    store.get_or_create_session(ALICE)
    assert store.has_any_sessions() is False
    store.get_or_create_session(SessionSource(Platform.SLACK, "2"))
    assert store.has_any_sessions() is True


def test_old_lanes_are_pruned_but_not_their_sessions(any_store: AnyStore, time: Time, database: Database) -> None:
    store = any_store(has_active_processes_fn=lambda key: key.endswith("busy"))
    ids = {}
    for chat in ("old", "busy", "off"):
        ids[chat] = store.get_or_create_session(SessionSource(Platform.SLACK, chat)).session_id
    store.suspend_session("agent:main:slack:dm:off")
    time.pass_(days=3)
    store.get_or_create_session(SessionSource(Platform.SLACK, "new"))
    assert store.prune_old_entries(4) == 0
    assert store.prune_old_entries(3) == 0
    time.pass_(seconds=1)
    assert store.prune_old_entries(3) == 1
    assert {entry.session_key.rpartition(":")[2] for entry in store.list_sessions()} == {"busy", "off", "new"}
    database.is_down = False
    assert store._db is not None
    assert store._db.get_session(ids["old"]) is not None
    assert {entry.session_key.rpartition(":")[2] for entry in store.list_sessions()} == {"busy", "off", "new"}


@pytest.mark.parametrize("days", [0, -1, None])
def test_pruning_is_off_without_an_age(any_store: AnyStore, time: Time, days: int | None) -> None:
    store = any_store()
    store.get_or_create_session(ALICE)
    time.pass_(days=1000)
    assert store.prune_old_entries(days) == 0


def test_failing_process_check_does_not_stop_pruning(make_store: MakeStore, time: Time) -> None:
    def fail(key: str) -> bool:
        raise RuntimeError(key)

    store = make_store(has_active_processes_fn=fail)
    store.get_or_create_session(ALICE)
    time.pass_(days=9)
    assert store.prune_old_entries(3) == 1


@pytest.mark.parametrize(
    ("how", "reason"),
    [("idle", "session_reset"), ("suspended", "session_reset"), ("new", "session_reset"), ("force", "session_reset")],
)
def test_session_that_is_left_ends_in_the_same_step(make_store: MakeStore, time: Time, how: str, reason: str) -> None:
    store = make_store(IDLE)
    first = store.get_or_create_session(ALICE)
    if how == "idle":
        time.pass_(minutes=61)
    elif how == "suspended":
        store.suspend_session(KEY)
    entry = store.reset_session(KEY) if how == "new" else store.get_or_create_session(ALICE, force_new=how == "force")
    assert entry is not None
    db = store._db
    assert db is not None
    old, new = db.get_session(first.session_id), db.get_session(entry.session_id)
    assert old is not None
    assert new is not None
    assert (old["end_reason"], new["end_reason"]) == (reason, None)
    assert (new["source"], new["user_id"], new["owner"]) == ("telegram", "7", "telegram:7")


def test_lane_whose_session_was_deleted_gets_a_new_one(make_store: MakeStore) -> None:
    store = make_store()
    first = store.get_or_create_session(ALICE)
    assert store._db is not None
    store._db.delete_session(first.session_id)
    entry = store.get_or_create_session(ALICE)
    assert entry.session_id != first.session_id
    assert entry.was_auto_reset is False


def test_session_that_ended_elsewhere_is_continued(make_store: MakeStore) -> None:
    store = make_store()
    first = store.get_or_create_session(ALICE)
    db = store._db
    assert db is not None
    db.end_session(first.session_id, "cli_close")
    assert store.get_or_create_session(ALICE).session_id == first.session_id
    session = db.get_session(first.session_id)
    assert session is not None
    assert session["ended_at"] is None


def test_lane_follows_a_session_that_was_compressed_elsewhere(make_store: MakeStore) -> None:
    store = make_store()
    first = store.get_or_create_session(ALICE)
    db = store._db
    assert db is not None
    db.end_session(first.session_id, "compression")
    db.create_session("20260101_000000_0000beef", "telegram", parent_session_id=first.session_id, owner="telegram:7")
    entry = store.get_or_create_session(ALICE)
    assert entry.session_id == "20260101_000000_0000beef"
    assert (entry.was_auto_reset, entry.origin) == (False, ALICE)


@pytest.mark.parametrize("at_hour", [1, 2, 3, 4])
def test_daily_reset_in_the_zone_of_the_machine_follows_its_clock_changes(
    make_store: MakeStore, time: Time, at_hour: int
) -> None:
    store = make_store(GatewayConfig(default_reset_policy=SessionResetPolicy(mode="daily", at_hour=at_hour)))
    boundary = {1: "00:00", 2: "01:00", 3: "01:00", 4: "02:00"}[at_hour]  # in UTC, on the day of the change
    time.now = datetime.fromisoformat(f"2026-03-29T{boundary}:00+00:00").timestamp() - 1
    with local_zone(BERLIN):
        first = store.get_or_create_session(ALICE)
        assert store.get_or_create_session(ALICE).session_id == first.session_id
        time.pass_(seconds=1)
        assert store.get_or_create_session(ALICE).auto_reset_reason == "daily"


@pytest.mark.parametrize(
    ("source", "owner"),
    [
        (SessionSource(Platform.SLACK, "C", chat_type="group", user_id="U"), "slack:U"),
        (
            SessionSource(Platform.SLACK, "C", chat_type="group", user_id="U", thread_id="t"),
            "agent:main:slack:group:C:t",
        ),
        (SessionSource(Platform.SLACK, "C"), "agent:main:slack:dm:C"),
        (SessionSource(Platform.SLACK, ""), "agent:main:slack:dm"),
    ],
)
def test_session_of_every_lane_has_an_owner(make_store: MakeStore, source: SessionSource, owner: str) -> None:
    store = make_store()
    entry = store.get_or_create_session(source)
    assert store._db is not None
    session = store._db.get_session(entry.session_id)
    assert session is not None
    assert session["owner"] == owner


@pytest.mark.parametrize("odd", ["", "x" * 10_240, "a\x00b\n", "\ud800", "a:b:c", "😀" * 2000])
@pytest.mark.parametrize("chat_type", ["dm", "group", "weird\x00type"])
def test_odd_ids_are_stored_and_found_again(any_store: AnyStore, odd: str, chat_type: str) -> None:
    store = any_store()
    source = SessionSource(
        Platform.SIGNAL, odd, chat_type=chat_type, user_id=odd, user_name=odd, chat_name=odd, thread_id=odd
    )
    first = store.get_or_create_session(source)
    assert store.get_or_create_session(source).session_id == first.session_id
    assert first.origin == source


def test_clock_that_jumps_back_keeps_the_session(any_store: AnyStore, time: Time) -> None:
    store = any_store(IDLE)
    first = store.get_or_create_session(ALICE)
    time.pass_(days=-400)
    assert store.get_or_create_session(ALICE).session_id == first.session_id


def test_lane_of_an_absent_plugin_is_kept(any_store: AnyStore) -> None:
    platform = Platform.register("test_pigeon")
    source = SessionSource(platform, "coop")
    store = any_store()
    first = store.get_or_create_session(source)
    Platform.unregister("test_pigeon")
    (entry,) = store.list_sessions()
    assert entry == first
    assert entry.platform is not None
    assert not entry.platform.is_known


def test_store_works_without_a_gateway_or_settings(home: object) -> None:
    config = GatewayConfig()
    with SessionStore(config.sessions_dir, config) as store:
        entry = store.get_or_create_session(ALICE)
        assert store._db is not None
        assert store._db.get_session(entry.session_id) is not None
    assert (config.sessions_dir / "sessions.json").exists()


def test_two_stores_share_the_lanes(make_store: MakeStore) -> None:
    one, other = make_store(), make_store()
    assert one.get_or_create_session(ALICE).session_id == other.get_or_create_session(ALICE).session_id
    other.suspend_session(KEY)
    assert one.get_or_create_session(ALICE).auto_reset_reason == "suspended"


def test_touch_writes_once(make_store: MakeStore, database: Database) -> None:
    store = make_store()
    store.get_or_create_session(ALICE)
    database.writes_left = 2
    store.get_or_create_session(ALICE)
    store.update_session(KEY, 5)
    assert database.writes_left == 0
    assert store.degraded_reason is None
