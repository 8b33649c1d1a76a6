"""Messages are appended one by one or together, once for each uid, in the order of storing."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from hermes.errors import InvalidValue, UnknownSession
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import (
    CALLS,
    PICTURE,
    at_once,
    column,
    contents,
    ids,
    only_message,
    say,
    session_of,
    start,
)
from tests.support.stores import Opener


class TestAppend:
    def test_append_returns_the_id_of_the_message(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert say(store, "s", "a", "b") == ids(store.get_messages("s"))

    def test_message_ids_grow(self, store: SessionDBProvider) -> None:
        start(store, "s")
        first, second, third = say(store, "s", "a", "b", "c")
        assert first < second < third

    def test_message_ids_are_never_reused(self, store: SessionDBProvider) -> None:
        start(store, "s")
        gone = max(say(store, "s", "a", "b"))
        store.clear_messages("s")
        assert min(say(store, "s", "c")) > gone

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("tool_name", "terminal"),
            ("tool_name", "a\0b"),
            ("tool_call_id", "call_1"),
            ("token_count", 150),
            ("token_count", 0),
            ("token_count", 2**62),
            ("finish_reason", "stop"),
            ("reasoning", "Let me think \0 \ud800"),
            ("reasoning_content", ""),
            ("reasoning_content", "\x01json:x"),
            ("platform_message_id", "tg-7"),
            ("tool_calls", CALLS),
            ("tool_calls", [{"id": "c", "function": {"name": "x", "arguments": "ü\0\ud800"}}]),
            ("tool_calls", {"id": "single"}),
        ],
    )
    def test_field_round_trips_exactly(self, store: SessionDBProvider, field: str, value: Any) -> None:
        start(store, "s")
        fields: dict[str, Any] = {field: value}
        store.append_message("s", "assistant", "x", **fields)
        assert only_message(store, "s")[field] == value

    @pytest.mark.parametrize("field", ["reasoning_details", "codex_reasoning_items", "codex_message_items"])
    def test_structured_reasoning_is_kept_as_json(self, store: SessionDBProvider, field: str) -> None:
        start(store, "s")
        value = [{"type": "reasoning.text", "text": "über \0 \ud800"}]
        fields: dict[str, Any] = {field: value}
        store.append_message("s", "assistant", "x", **fields)
        assert json.loads(only_message(store, "s")[field]) == value

    @pytest.mark.parametrize(
        "field", ["tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items"]
    )
    def test_empty_structured_field_is_none(self, store: SessionDBProvider, field: str) -> None:
        start(store, "s")
        fields: dict[str, Any] = {field: []}
        store.append_message("s", "assistant", "x", **fields)
        assert only_message(store, "s")[field] is None

    def test_json_is_stored_readable(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", "x", reasoning_details=[{"text": "世界"}])
        assert "世界" in only_message(store, "s")["reasoning_details"]

    def test_flags_are_integers(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", observed=True)
        message = only_message(store, "s")
        assert (message["observed"], message["active"]) == (1, 1)

    def test_append_works_on_an_ended_session(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.end_session("s", "user_exit")
        say(store, "s", "late")
        assert (contents(store.get_messages("s")), session_of(store, "s")["end_reason"]) == (["late"], "user_exit")

    def test_append_to_an_unknown_session_is_an_error(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession):
            store.append_message("missing", "user", "x")
        assert store.message_count() == 0

    def test_eight_threads_lose_nothing(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = at_once(8, lambda n: say(store, "s", *(f"{n}-{i}" for i in range(10))))
        assert sorted(ids(store.get_messages("s"))) == sorted(each for some in found for each in some)
        assert session_of(store, "s")["message_count"] == 80

    def test_each_thread_keeps_its_order(self, store: SessionDBProvider) -> None:
        start(store, "s")
        at_once(4, lambda n: say(store, "s", *(f"{n}-{i}" for i in range(10))))
        texts = contents(store.get_messages("s"))
        assert [[text for text in texts if text.startswith(f"{n}-")] for n in range(4)] == [
            [f"{n}-{i}" for i in range(10)] for n in range(4)
        ]


class TestTimestamp:
    def test_timestamp_defaults_to_the_clock(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        clock.advance(7)
        say(store, "s", "x")
        assert only_message(store, "s")["timestamp"] == NOW + 7

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (1234.5, 1234.5),
            (1234, 1234.0),
            ("1234.5", 1234.5),
            (datetime(2026, 1, 1, tzinfo=UTC), 1767225600.0),
            (0, 0.0),
            (-1.5, -1.5),
            ("yesterday", NOW),
            (None, NOW),
            (True, NOW),
            ([1], NOW),
            (math.nan, NOW),
            (math.inf, NOW),
            (10**400, NOW),
        ],
    )
    def test_timestamp_can_be_given_and_invalid_ones_mean_now(
        self, store: SessionDBProvider, given: Any, kept: float
    ) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", timestamp=given)
        assert only_message(store, "s")["timestamp"] == kept


class TestOddMoments:
    @pytest.mark.parametrize("moment", [1.7e18, -1.7e18, 1e300])
    def test_time_that_is_not_in_seconds_does_not_hide_the_session(
        self, store: SessionDBProvider, moment: float
    ) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", timestamp=moment)
        store.append_message("s", "user", "y")
        for order_by_last_active in (False, True):
            assert ids(store.list_sessions_rich(order_by_last_active=order_by_last_active)) == ["s"]
        assert ids(store.search_sessions()) == ["s"]


class TestOrder:
    def test_message_order_is_the_order_of_storing_for_any_clock(self, store: SessionDBProvider) -> None:
        start(store, "s")
        for text, moment in (("first", 300.0), ("second", 100.0), ("third", 200.0)):
            store.append_message("s", "user", text, timestamp=moment)
        assert contents(store.get_messages("s")) == ["first", "second", "third"]

    def test_reads_and_replay_agree_when_the_clock_steps_back(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        for text in ("first", "second", "third"):
            say(store, "s", text)
            clock.advance(-100)
        replayed = store.get_messages_as_conversation("s")
        assert contents(replayed) == contents(store.get_messages("s")) == ["first", "second", "third"]


class TestUid:
    def test_repeated_uid_returns_the_first_id(self, store: SessionDBProvider) -> None:
        start(store, "s")
        first = store.append_message("s", "user", "x", uid="u1")
        assert store.append_message("s", "user", "x", uid="u1") == first

    def test_repeated_uid_changes_nothing(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", uid="u1", tool_calls=CALLS)
        before = store.export_session("s")
        clock.advance(9)
        store.append_message("s", "user", "another text", uid="u1", tool_calls=CALLS)
        assert store.export_session("s") == before

    def test_repeated_uid_is_recognized_after_reopening(self, open_store: Opener) -> None:
        with open_store() as first:
            start(first, "s")
            message_id = first.append_message("s", "user", "x", uid="u1")
        assert open_store().append_message("s", "user", "x", uid="u1") == message_id

    def test_same_uid_in_another_session_is_another_message(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        assert store.append_message("a", "user", "x", uid="u") != store.append_message("b", "user", "x", uid="u")

    def test_uids_differ_by_case(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.append_message("s", "user", "x", uid="u") != store.append_message("s", "user", "x", uid="U")

    def test_uid_is_a_column_of_the_row(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", uid="u1")
        assert only_message(store, "s")["uid"] == "u1"

    def test_uid_is_generated_when_none_is_given(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "same", "same")
        first, second = column(store.get_messages("s"), "uid")
        assert len({first, second, "", None}) == 4

    def test_eight_threads_with_one_uid_store_one_message(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert len(set(at_once(8, lambda _: store.append_message("s", "user", "x", uid="u")))) == 1
        assert store.message_count("s") == 1


class TestAppendMany:
    def test_append_messages_returns_the_ids_in_order(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = store.append_messages("s", [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
        assert found == ids(store.get_messages("s"))

    def test_append_messages_accepts_every_argument_of_append_message(self, store: SessionDBProvider) -> None:
        start(store, "one", "many")
        fields: dict[str, Any] = {
            "role": "assistant",
            "content": PICTURE,
            "tool_name": "t",
            "tool_calls": CALLS,
            "tool_call_id": "c",
            "token_count": 3,
            "finish_reason": "stop",
            "reasoning": "r",
            "reasoning_content": "rc",
            "reasoning_details": [1],
            "codex_reasoning_items": [2],
            "codex_message_items": [3],
            "platform_message_id": "p",
            "observed": True,
            "timestamp": 5.0,
            "uid": "u",
        }
        store.append_message("one", **fields)
        store.append_messages("many", [fields])
        differing = {"id", "session_id"}
        one, many = only_message(store, "one"), only_message(store, "many")
        assert {k: v for k, v in one.items() if k not in differing} == {
            k: v for k, v in many.items() if k not in differing
        }

    def test_append_messages_counts_like_single_appends(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_messages("s", [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": CALLS}])
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (2, 2)

    def test_appending_no_messages_returns_no_ids(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.append_messages("s", []) == []

    def test_append_messages_accepts_any_iterable(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_messages("s", ({"role": "user", "content": text} for text in "ab"))
        assert contents(store.get_messages("s")) == ["a", "b"]

    def test_one_bad_message_means_none_is_stored(self, store: SessionDBProvider) -> None:
        start(store, "s")
        with pytest.raises(InvalidValue):
            store.append_messages("s", [{"role": "user", "content": "good"}, {"role": "user", "content": {1, 2}}])
        assert store.get_messages("s") == []

    def test_uid_repeated_within_the_batch_is_one_message(self, store: SessionDBProvider) -> None:
        start(store, "s")
        message = {"role": "user", "content": "a", "uid": "u"}
        first, second = store.append_messages("s", [message, message])
        assert first == second

    def test_repeated_batch_returns_the_first_ids(self, store: SessionDBProvider) -> None:
        start(store, "s")
        batch = [{"role": "user", "content": "a", "uid": "1"}, {"role": "assistant", "content": "b", "uid": "2"}]
        assert store.append_messages("s", batch) == store.append_messages("s", batch)
        assert store.message_count("s") == 2

    def test_five_hundred_messages_are_appended_at_once(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_messages("s", [{"role": "user", "content": str(n)} for n in range(500)])
        assert contents(store.get_messages("s")) == [str(n) for n in range(500)]

    def test_append_messages_to_an_unknown_session_is_an_error(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession):
            store.append_messages("missing", [{"role": "user", "content": "x"}])
