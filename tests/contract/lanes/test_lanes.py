"""Lanes: which session a chat uses, and the marks that decide how it continues."""

from __future__ import annotations

import pytest

from hermes.errors import Conflict, InvalidValue, UnknownSession
from hermes.state.lanes.types import ImportedLane, Keep, LaneRow, NewSession, Start
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.lanes import KEY, OTHER, accept, broken_rules, claim, start_lane
from tests.support.stores import Opener


class TestResolve:
    def test_a_new_lane_gets_a_session_in_the_same_transaction(self, store: SessionDBProvider) -> None:
        seen: list[LaneRow | None] = []

        def decide(row: LaneRow | None, now: float) -> Start:
            seen.append(row)
            assert now == NOW
            return Start(NewSession("s1", "telegram", user_id="7"), {"platform": "telegram", "origin": {"chat": "1"}})

        resolved = store.lanes.resolve(KEY, decide)
        assert (seen, resolved.before, resolved.is_new_session) == ([None], None, True)
        assert (resolved.lane["session_id"], resolved.lane["origin"]) == ("s1", {"chat": "1"})
        assert (resolved.lane["created_at"], resolved.lane["updated_at"]) == (NOW, NOW)
        session = store.get_session("s1")
        assert session is not None
        assert (session["source"], session["owner"], session["ended_at"]) == ("telegram", "telegram:7", None)

    def test_a_session_without_a_user_belongs_to_its_lane(self, store: SessionDBProvider) -> None:
        store.lanes.resolve(KEY, lambda *_: Start(NewSession("s1", "telegram")))
        store.lanes.resolve("local", lambda *_: Start(NewSession("s2", "cli")))
        sessions = [store.get_session(each) for each in ("s1", "s2")]
        assert [each and each["owner"] for each in sessions] == [KEY, None]

    def test_keeping_a_lane_touches_and_changes_it(self, store: SessionDBProvider, clock: FakeClock) -> None:
        before = start_lane(store, fields={"was_auto_reset": True, "auto_reset_reason": "idle"})
        clock.advance(5)
        resolved = store.lanes.resolve(KEY, lambda *_: Keep({"was_auto_reset": False, "auto_reset_reason": None}))
        assert (resolved.before, resolved.is_new_session) == (before, False)
        assert resolved.lane == store.lanes.get(KEY)
        assert (resolved.lane["updated_at"], resolved.lane["was_auto_reset"]) == (NOW + 5, False)
        assert store.lanes.resolve(KEY, lambda *_: Keep(touch=False), now=NOW + 9).lane["updated_at"] == NOW + 5

    def test_a_new_session_ends_the_old_one_and_clears_the_marks(self, store: SessionDBProvider) -> None:
        start_lane(store, fields={"suspended": True, "last_prompt_tokens": 9, "platform": "telegram"})
        resolved = store.lanes.resolve(
            KEY,
            lambda row, _: Start(NewSession("s2", "telegram"), {"was_auto_reset": True}, end_reason="session_reset"),
        )
        lane, old = resolved.lane, store.get_session("s1")
        assert old is not None
        assert (old["end_reason"], old["ended_at"]) == ("session_reset", NOW)
        assert (lane["session_id"], lane["suspended"], lane["last_prompt_tokens"]) == ("s2", False, 0)
        assert (lane["was_auto_reset"], lane["platform"]) == (True, None)

    def test_a_session_may_stay_open(self, store: SessionDBProvider) -> None:
        start_lane(store)
        store.lanes.resolve(KEY, lambda *_: Start(NewSession("s2", "telegram"), end_reason=None))
        old = store.get_session("s1")
        assert old is not None
        assert old["ended_at"] is None

    def test_a_failing_decision_changes_nothing(self, store: SessionDBProvider) -> None:
        before = start_lane(store)

        def decide(row: LaneRow | None, now: float) -> Keep:
            raise InvalidValue("no")

        with pytest.raises(InvalidValue):
            store.lanes.resolve(KEY, decide)
        assert store.lanes.get(KEY) == before

    def test_a_lane_that_does_not_exist_cannot_be_kept(self, store: SessionDBProvider) -> None:
        with pytest.raises(InvalidValue):
            store.lanes.resolve(KEY, lambda *_: Keep())
        assert store.lanes.get(KEY) is None

    def test_the_session_of_another_owner_is_not_taken(self, store: SessionDBProvider) -> None:
        store.create_session("s9", "telegram", user_id="2")
        with pytest.raises(Conflict):
            store.lanes.resolve(KEY, lambda *_: Start(NewSession("s9", "telegram", user_id="1")))
        assert store.lanes.get(KEY) is None

    def test_a_lane_whose_session_is_deleted_starts_again(self, store: SessionDBProvider) -> None:
        start_lane(store)
        assert store.delete_session("s1")
        assert store.lanes.get(KEY) is None
        assert start_lane(store, session_id="s2")["session_id"] == "s2"
        assert broken_rules(store) == []

    @pytest.mark.parametrize(
        "key", ["x" * 10_000, "a\0b", "tab\tline\n", "\ud800", "東京" * 400, "\x01json:1", "#" * 256]
    )
    def test_any_key_names_a_lane_of_its_own(self, store: SessionDBProvider, key: str) -> None:
        start_lane(store, key)
        start_lane(store, key + "!", "s2")
        lanes = [store.lanes.get(each) for each in (key, key + "!")]
        assert [(each["session_key"], each["session_id"]) for each in lanes if each] == [(key, "s1"), (key + "!", "s2")]
        assert accept(store, "m", key).message["session_key"] == key
        assert claim(store).lease.session_key == key


class TestUpdate:
    def test_columns_change_and_the_lane_is_touched(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_lane(store)
        clock.advance(3)
        row = store.lanes.update(KEY, last_prompt_tokens=0, extra={"model": "m"}, expiry_finalized=True)
        assert row == store.lanes.get(KEY)
        assert row is not None
        assert (row["updated_at"], row["extra"], row["expiry_finalized"]) == (NOW + 3, {"model": "m"}, True)
        assert store.lanes.update("unknown") is None

    @pytest.mark.parametrize(
        "fields",
        [{"suspended": "yes"}, {"origin": [1]}, {"chat_type": None}, {"nothing": 1}, {"updated_at": float("nan")}],
    )
    def test_wrong_values_are_refused(self, store: SessionDBProvider, fields: dict[str, object]) -> None:
        before = start_lane(store)
        with pytest.raises(InvalidValue):
            store.lanes.update(KEY, **fields)  # type: ignore[arg-type]
        assert store.lanes.get(KEY) == before

    def test_texts_round_trip(self, store: SessionDBProvider) -> None:
        row = start_lane(
            store, fields={"display_name": "a\0b", "origin": {"n": "\ud800 東京"}, "chat_type": "\x01json:"}
        )
        assert (row["display_name"], row["origin"], row["chat_type"]) == ("a\0b", {"n": "\ud800 東京"}, "\x01json:")

    def test_counters_of_the_session_are_shown(self, store: SessionDBProvider) -> None:
        start_lane(store)
        store.append_message("s1", "user", "hi")
        store.update_token_counts("s1", input_tokens=3, output_tokens=4)
        row = store.lanes.get(KEY)
        assert row is not None
        assert (row["message_count"], row["input_tokens"], row["output_tokens"]) == (1, 3, 4)


class TestMarks:
    def test_suspended_beats_resume_pending(self, store: SessionDBProvider) -> None:
        start_lane(store)
        assert store.lanes.mark_resume_pending(KEY, "restart_timeout")
        assert store.lanes.suspend(KEY)
        assert not store.lanes.mark_resume_pending(KEY, "restart_timeout")
        assert not store.lanes.suspend("unknown")
        assert not store.lanes.mark_resume_pending("unknown", "x")

    def test_resume_pending_is_cleared_once(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start_lane(store)
        clock.advance(2)
        store.lanes.mark_resume_pending(KEY, "shutdown_timeout")
        row = store.lanes.get(KEY)
        assert row is not None
        assert (row["resume_reason"], row["last_resume_marked_at"]) == ("shutdown_timeout", NOW + 2)
        assert [store.lanes.clear_resume_pending(KEY) for _ in range(2)] == [True, False]
        row = store.lanes.get(KEY)
        assert row is not None
        assert (row["resume_pending"], row["resume_reason"], row["last_resume_marked_at"]) == (False, None, None)

    def test_recently_active_lanes_are_marked(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for number, fields in enumerate(
            ({}, {"suspended": True}, {"resume_pending": True}, {"expiry_finalized": True})
        ):
            start_lane(store, f"k{number}", f"s{number}", fields)  # type: ignore[arg-type]
        clock.advance(-121)
        start_lane(store, "old", "s9")
        clock.advance(121)
        assert store.lanes.mark_recently_active(NOW - 120) == 2
        marked = [row["session_key"] for row in store.lanes.recent() if row["resume_reason"] == "restart_interrupted"]
        assert sorted(marked) == ["k0", "k3"]


class TestSwitch:
    def test_the_old_session_ends_and_the_other_is_open(self, store: SessionDBProvider) -> None:
        start_lane(store, fields={"resume_pending": True, "display_name": "Alice"})
        store.create_session("s2", "telegram", user_id="1")
        store.end_session("s2", "session_reset")
        row = store.lanes.switch(KEY, "s2", owner="telegram:1")
        assert row is not None
        assert (row["session_id"], row["resume_pending"], row["display_name"]) == ("s2", False, "Alice")
        old, new = store.get_session("s1"), store.get_session("s2")
        assert old is not None
        assert new is not None
        assert (old["end_reason"], new["end_reason"]) == ("session_switch", None)
        assert store.lanes.switch(KEY, "s2") == row

    def test_the_session_of_another_owner_is_unknown(self, store: SessionDBProvider) -> None:
        before = start_lane(store)
        store.create_session("s2", "telegram", user_id="2")
        for session_id in ("s2", "nowhere"):
            with pytest.raises(UnknownSession):
                store.lanes.switch(KEY, session_id, owner="telegram:1")
        assert store.lanes.switch("unknown", "s2") is None
        assert store.lanes.get(KEY) == before

    def test_rebinding_checks_the_session_that_it_expects(self, store: SessionDBProvider) -> None:
        start_lane(store)
        store.create_session("s2", "telegram")
        assert not store.lanes.rebind(KEY, "s0", "s2")
        assert store.lanes.rebind(KEY, "s1", "s2")
        with pytest.raises(UnknownSession):
            store.lanes.rebind(KEY, "s2", "nowhere")

    def test_compression_moves_the_lane_to_the_child(self, store: SessionDBProvider) -> None:
        start_lane(store)
        last = [store.append_message("s1", "user", each) for each in "abc"][-1]
        store.compress_session("s1", "s2", "short", tail_from=last)
        row = store.lanes.find_by_session("s2")
        assert row is not None
        assert (row["session_key"], store.lanes.find_by_session("s1")) == (KEY, None)


class TestLists:
    def test_pages_are_complete_and_newest_first(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for number in range(7):
            start_lane(store, f"k{number}", f"s{number}", {"expiry_finalized": number % 2 == 0})
            clock.advance(number % 3)
        whole = [row["session_key"] for row in store.lanes.recent(limit=None)]
        paged, after = [], None
        while page := store.lanes.recent(after=after, limit=2):
            paged += [row["session_key"] for row in page]
            after = page[-1]["cursor"]
        assert paged == whole
        assert len(whole) == store.lanes.count() == 7
        times = [row["updated_at"] for row in store.lanes.recent(limit=None)]
        assert times == sorted(times, reverse=True)
        assert [row["session_key"] for row in store.lanes.recent(active_since=times[3])] == whole[:4]

    def test_idle_lanes_are_walked_from_the_oldest(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for number in range(5):
            start_lane(store, f"k{number}", f"s{number}", {"expiry_finalized": number == 1})
            clock.advance(10)
        assert [row["session_key"] for row in store.lanes.idle(NOW + 30)] == ["k0", "k2"]
        first = store.lanes.idle(NOW + 99, limit=1)
        rest = store.lanes.idle(NOW + 99, after=first[-1]["cursor"])
        assert [row["session_key"] for row in (*first, *rest)] == ["k0", "k2", "k3", "k4"]

    @pytest.mark.parametrize("cursor", ["", "x", "[]", "{}", '["a", 1]'])
    def test_a_wrong_cursor_is_refused(self, store: SessionDBProvider, cursor: str) -> None:
        with pytest.raises(InvalidValue):
            store.lanes.recent(after=cursor)


class TestPrune:
    def test_old_lanes_go_but_their_sessions_stay(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for number, fields in enumerate(({}, {"suspended": True}, {}, {"expiry_finalized": True}, {})):
            start_lane(store, f"k{number}", f"s{number}", fields)  # type: ignore[arg-type]
        accept(store, "m", "k2")
        clock.advance(100)
        start_lane(store, "new", "s9")
        assert store.lanes.prune(NOW + 50, skip=lambda key: key == "k4") == 2
        assert sorted(row["session_key"] for row in store.lanes.recent()) == ["k1", "k2", "k4", "new"]
        assert store.session_count() == 6
        assert store.lanes.prune(NOW + 50, skip=lambda key: key == "k4") == 0

    def test_tokens_do_not_begin_again_after_a_prune(self, store: SessionDBProvider) -> None:
        start_lane(store)
        accept(store, "m1")
        first = claim(store)
        store.turns.finish(first.lease, first.turn_id or "", now=NOW)
        assert store.lanes.prune(NOW + 1) == 1
        accept(store, "m2")
        assert claim(store).lease.token > first.lease.token


class TestImport:
    def test_lanes_are_imported_once(self, store: SessionDBProvider) -> None:
        store.create_session("s2", "telegram", user_id="2")
        rows = [
            ImportedLane(KEY, NewSession("s1", "telegram", user_id="1"), {"created_at": 5.0, "updated_at": 7.0}),
            ImportedLane(OTHER, NewSession("s2", "telegram", user_id="2"), {"display_name": "Bob"}),
        ]
        assert store.lanes.import_once(rows) == 2
        assert store.lanes.import_once(rows) is None
        lane = store.lanes.get(KEY)
        assert lane is not None
        assert (lane["created_at"], lane["updated_at"]) == (5.0, 7.0)

    def test_nothing_is_imported_into_a_store_with_lanes(self, store: SessionDBProvider) -> None:
        start_lane(store)
        assert store.lanes.import_once([ImportedLane(OTHER, NewSession("s2", "telegram"))]) is None
        assert store.lanes.count() == 1

    def test_two_processes_import_a_file_once(self, open_store: Opener) -> None:
        rows = [ImportedLane(f"k{number}", NewSession(f"s{number}", "telegram")) for number in range(20)]
        first, second = open_store(), open_store()
        assert [each.lanes.import_once(rows) for each in (first, second)] == [20, None]
        assert first.lanes.count() == 20


class TestResumeCandidates:
    def test_marked_lanes_are_listed_unless_they_are_suspended(self, store: SessionDBProvider) -> None:
        for number, key in enumerate("abcd"):
            start_lane(store, key, f"s{number}")
        for key in "abc":
            store.lanes.mark_resume_pending(key, "restart_timeout")
        store.lanes.suspend("b")
        assert [row["session_key"] for row in store.lanes.resume_candidates()] == ["a", "c"]
        store.lanes.clear_resume_pending("a")
        assert [row["session_key"] for row in store.lanes.resume_candidates()] == ["c"]

    def test_the_time_of_the_mark_counts(self, store: SessionDBProvider) -> None:
        for number, (key, marked) in enumerate((("old", 50.0), ("new", 200.0))):
            start_lane(store, key, f"s{number}")
            store.lanes.mark_resume_pending(key, "restart_timeout", now=marked)
        start_lane(store, "unknown", "s9", {"resume_pending": True, "updated_at": 150.0})
        found = {since: [row["session_key"] for row in store.lanes.resume_candidates(since)] for since in (100, 180)}
        assert found == {100: ["new", "unknown"], 180: ["new"]}

    def test_pages_continue_after_a_cursor(self, store: SessionDBProvider) -> None:
        expected = sorted(f"lane {number}" for number in range(7))
        for number, key in enumerate(expected):
            start_lane(store, key, f"s{number}", {"resume_pending": True})
        found: list[str] = []
        after = None
        while rows := store.lanes.resume_candidates(after=after, limit=3):
            found += [row["session_key"] for row in rows]
            after = rows[-1]["cursor"]
        assert found == expected
        with pytest.raises(InvalidValue):
            store.lanes.resume_candidates(after="no cursor")
