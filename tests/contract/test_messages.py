"""Messages: appended one by one or together, replaced, cleared, read back exactly as they were given."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from hermes.errors import InvalidValue, UnknownSession
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import (
    at_once,
    column,
    contents,
    ids,
    only_message,
    say,
    session_of,
    start,
    talk,
)
from tests.support.stores import Opener

CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}},
    {"id": "c2", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
]
PICTURE = [
    {"type": "text", "text": "what is this? 世界"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
]


class Shout(str):
    """A string of another class, such as enums and template engines make."""

    __slots__ = ()


CONTENTS: dict[str, Any] = {
    "none": None,
    "empty text": "",
    "text": "hello",
    "spaces around": "  hello \n\t ",
    "line ends": "a\r\nb\rc\n",
    "scripts": "Grüße, 世界, שלום, नमस्ते, 🧑‍👩‍👧",
    "NUL": "a\0b",
    "only NUL": "\0",
    "NUL at the end": "end\0",
    "lone surrogate": "\ud83d",
    "surrogates and NUL": "\udc80 \0 ü \ud800",
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028",
    "byte order mark": "\ufeffhello",
    "not a character": "\ufffe\uffff\U0010ffff",
    "combining": "e\u0301 is not \u00e9",
    "old sentinel": "\x00json:",
    "old sentinel with JSON": '\x00json:[{"type": "text", "text": "x"}]',
    "old sentinel with rubbish": "\x00json:{",
    "new sentinel": "\x01json:",
    "new sentinel with JSON": '\x01json:["x"]',
    "new sentinel with rubbish": "\x01json:{",
    "new sentinel twice": '\x01json:"\\u0001json:[]"',
    "looks like JSON": '[{"type": "text"}]',
    "digits": "12345678901234567890",
    "SQL": "'; DROP TABLE messages; --",
    "empty list": [],
    "empty dict": {},
    "multimodal": PICTURE,
    "dict": {"type": "text", "text": "hi", "nested": {"deep": [1, 2.5, True, None]}},
    "list of texts": ["a", "", "b"],
    "NUL inside a list": [{"type": "text", "text": "a\0b"}],
    "surrogate inside a list": [{"type": "text", "text": "\ud800"}],
    "sentinel inside a list": ["\x01json:[]", "\x00json:[]"],
    "large integer": [2**70],
    "infinity": [math.inf, -math.inf],
    "10 MB of ASCII": "hello you" * 1_165_085,
    "10 MB of CJK": "世" * 3_500_000,
}


class TestOddMoments:
    @pytest.mark.parametrize("moment", [1.7e18, -1.7e18, 1e300])
    def test_that_is_no_epoch_second_does_not_hide_the_session(self, store: SessionDBProvider, moment: float) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", timestamp=moment)
        store.append_message("s", "user", "y")
        for order_by_last_active in (False, True):
            assert ids(store.list_sessions_rich(order_by_last_active=order_by_last_active)) == ["s"]
        assert ids(store.search_sessions()) == ["s"]


class TestContent:
    @pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
    def test_round_trips_exactly(self, store: SessionDBProvider, content: Any) -> None:
        start(store, "s")
        store.append_message("s", "tool", content)
        found = only_message(store, "s")["content"]
        assert (type(found), found == content) == (type(content), True)

    @pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
    def test_is_replayed_exactly(self, store: SessionDBProvider, content: Any) -> None:
        start(store, "s")
        store.append_message("s", "tool", content)
        found = store.get_messages_as_conversation("s")[0]["content"]
        assert (type(found), found == content) == (type(content), True)

    def test_tuple_becomes_a_list(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", ({"type": "text", "text": "x"},))
        assert only_message(store, "s")["content"] == [{"type": "text", "text": "x"}]

    @pytest.mark.parametrize("text", ["hello", "a\0b", "\ud800", "\x00json:[1]", "\x01json:[1]"], ids=ascii)
    def test_string_of_another_class_round_trips_as_its_text(self, store: SessionDBProvider, text: str) -> None:
        start(store, "s")
        store.append_message("s", "user", Shout(text))
        assert only_message(store, "s")["content"] == text

    @pytest.mark.parametrize("content", ["a\0b", '\x01json:["x"]', '\x00json:["x"]'], ids=ascii)
    def test_unusual_first_message_stays_the_preview_as_the_session_goes_on(
        self, store: SessionDBProvider, content: str
    ) -> None:
        start(store, "s")
        say(store, "s", content, "b", "c", "d", "e", "f", "g", "h")
        assert column(store.list_sessions_rich(), "preview") == [content]

    def test_is_durable(self, open_store: Opener) -> None:
        with open_store() as first:
            start(first, "s")
            first.append_message("s", "user", PICTURE)
        assert only_message(open_store(), "s")["content"] == PICTURE


class TestAppend:
    def test_answers_the_id_under_which_it_is_found(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert say(store, "s", "a", "b") == ids(store.get_messages("s"))

    def test_ids_grow(self, store: SessionDBProvider) -> None:
        start(store, "s")
        first, second, third = say(store, "s", "a", "b", "c")
        assert first < second < third

    def test_ids_are_never_used_again(self, store: SessionDBProvider) -> None:
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

    def test_works_on_an_ended_session(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.end_session("s", "user_exit")
        say(store, "s", "late")
        assert (contents(store.get_messages("s")), session_of(store, "s")["end_reason"]) == (["late"], "user_exit")

    def test_unknown_session_is_an_error(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession):
            store.append_message("nobody", "user", "x")
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
    def test_is_the_time_of_the_clock(self, store: SessionDBProvider, clock: FakeClock) -> None:
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
    def test_can_be_given_and_rubbish_means_now(self, store: SessionDBProvider, given: Any, kept: float) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", timestamp=given)
        assert only_message(store, "s")["timestamp"] == kept


class TestOrder:
    def test_is_that_of_storing_whatever_the_clock_says(self, store: SessionDBProvider) -> None:
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


class TestCounts:
    def test_every_message_counts(self, store: SessionDBProvider) -> None:
        start(store, "s")
        talk(store, "s", 3)
        assert session_of(store, "s")["message_count"] == 6

    @pytest.mark.parametrize(("tool_calls", "count"), [(CALLS, 2), ({"id": "x"}, 1), ([], 0), (None, 0), ("call", 1)])
    def test_tool_calls_count_by_what_was_called(self, store: SessionDBProvider, tool_calls: Any, count: int) -> None:
        start(store, "s")
        store.append_message("s", "assistant", tool_calls=tool_calls)
        assert session_of(store, "s")["tool_call_count"] == count

    def test_results_of_tools_are_no_calls(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "tool", "output", tool_name="terminal", tool_call_id="c1")
        assert session_of(store, "s")["tool_call_count"] == 0

    def test_called_tools_are_counted_by_name(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", tool_calls=CALLS)
        store.append_message("s", "assistant", tool_calls=CALLS[:1])
        assert list(store.get_session_tools("s").items()) == [("terminal", 2), ("read_file", 1)]

    def test_names_of_tools_round_trip_exactly(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", tool_calls=[{"function": {"name": "a\0b"}}])
        assert store.get_session_tools("s") == {"a\0b": 1}

    def test_message_count_of_one_session(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        talk(store, "a", 2)
        talk(store, "b", 1)
        assert store.message_count("a") == 4

    def test_message_count_of_all_sessions(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        talk(store, "a", 2)
        talk(store, "b", 1)
        assert store.message_count() == 6

    def test_message_count_of_an_unknown_session_is_zero(self, store: SessionDBProvider) -> None:
        assert store.message_count("nobody") == 0


class TestUid:
    def test_repeat_answers_the_first_id(self, store: SessionDBProvider) -> None:
        start(store, "s")
        first = store.append_message("s", "user", "x", uid="u1")
        assert store.append_message("s", "user", "x", uid="u1") == first

    def test_repeat_changes_nothing(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", uid="u1", tool_calls=CALLS)
        before = store.export_session("s")
        clock.advance(9)
        store.append_message("s", "user", "another text", uid="u1", tool_calls=CALLS)
        assert store.export_session("s") == before

    def test_repeat_is_remembered_across_reopening(self, open_store: Opener) -> None:
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

    def test_is_on_the_row(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", "x", uid="u1")
        assert only_message(store, "s")["uid"] == "u1"

    def test_is_made_up_when_none_is_given(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "same", "same")
        first, second = column(store.get_messages("s"), "uid")
        assert len({first, second, "", None}) == 4

    def test_eight_threads_with_one_uid_store_one_message(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert len(set(at_once(8, lambda _: store.append_message("s", "user", "x", uid="u")))) == 1
        assert store.message_count("s") == 1


class TestAppendMany:
    def test_answers_the_ids_in_order(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = store.append_messages("s", [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
        assert found == ids(store.get_messages("s"))

    def test_takes_every_argument_of_append_message(self, store: SessionDBProvider) -> None:
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

    def test_counts_like_single_appends(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_messages("s", [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": CALLS}])
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (2, 2)

    def test_nothing_is_nothing(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.append_messages("s", []) == []

    def test_takes_any_iterable(self, store: SessionDBProvider) -> None:
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

    def test_repeated_batch_answers_the_first_ids(self, store: SessionDBProvider) -> None:
        start(store, "s")
        batch = [{"role": "user", "content": "a", "uid": "1"}, {"role": "assistant", "content": "b", "uid": "2"}]
        assert store.append_messages("s", batch) == store.append_messages("s", batch)
        assert store.message_count("s") == 2

    def test_five_hundred_at_once(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_messages("s", [{"role": "user", "content": str(n)} for n in range(500)])
        assert contents(store.get_messages("s")) == [str(n) for n in range(500)]

    def test_unknown_session_is_an_error(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession):
            store.append_messages("nobody", [{"role": "user", "content": "x"}])


class TestReplace:
    def test_puts_the_new_transcript_in_place_of_the_old(self, store: SessionDBProvider) -> None:
        start(store, "s")
        talk(store, "s", 2)
        store.replace_messages("s", [{"role": "user", "content": "new"}])
        assert contents(store.get_messages("s", include_inactive=True)) == ["new"]

    def test_takes_rewound_messages_away_too(self, store: SessionDBProvider) -> None:
        start(store, "s")
        target = talk(store, "s", 1)[0]
        store.rewind_to_message("s", target)
        store.replace_messages("s", [])
        assert store.get_messages("s", include_inactive=True) == []

    def test_sets_the_counters(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", "x", tool_calls=CALLS)
        store.replace_messages("s", [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": CALLS[:1]}])
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"]) == (2, 1)

    def test_sets_the_preview(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "old")
        store.replace_messages("s", [{"role": "user", "content": "new"}])
        assert column(store.list_sessions_rich(), "preview") == ["new"]

    def test_counts_the_tools_anew(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", "x", tool_calls=CALLS)
        store.replace_messages("s", [{"role": "assistant", "tool_calls": CALLS[:1]}])
        assert store.get_session_tools("s") == {"terminal": 1}

    def test_leaves_the_count_of_rewinds(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", talk(store, "s", 1)[0])
        store.replace_messages("s", [{"role": "user", "content": "a"}])
        assert session_of(store, "s")["rewind_count"] == 1

    def test_leaves_other_sessions_alone(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        say(store, "b", "mine")
        store.replace_messages("a", [{"role": "user", "content": "x"}])
        assert contents(store.get_messages("b")) == ["mine"]

    def test_role_defaults_to_unknown(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.replace_messages("s", [{"content": "x"}])
        assert only_message(store, "s")["role"] == "unknown"

    @pytest.mark.parametrize(("role", "kept"), [("assistant", "thought"), ("user", None), ("tool", None)])
    def test_reasoning_is_kept_for_the_assistant_only(
        self, store: SessionDBProvider, role: str, kept: str | None
    ) -> None:
        start(store, "s")
        store.replace_messages("s", [{"role": role, "content": "x", "reasoning": "thought"}])
        assert only_message(store, "s")["reasoning"] == kept

    def test_message_id_is_the_platforms(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.replace_messages("s", [{"role": "user", "content": "x", "message_id": "tg-1"}])
        assert only_message(store, "s")["platform_message_id"] == "tg-1"

    def test_given_times_are_kept(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.replace_messages("s", [{"role": "user", "content": "x", "timestamp": 5.0}])
        assert only_message(store, "s")["timestamp"] == 5.0

    def test_missing_times_grow_from_now(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.replace_messages("s", [{"role": "user", "content": str(n)} for n in range(3)])
        first, second, third = column(store.get_messages("s"), "timestamp")
        assert NOW == first < second < third

    def test_order_is_that_of_the_list_whatever_the_times(self, store: SessionDBProvider) -> None:
        start(store, "s")
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "new"},
            {"role": "user", "content": "old", "timestamp": 5.0},
        ]
        store.replace_messages("s", messages)
        assert contents(store.get_messages_as_conversation("s")) == ["new", "old"]

    def test_a_conversation_put_back_reads_the_same(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "user", PICTURE, platform_message_id="tg-1", observed=True)
        store.append_message("s", "assistant", None, tool_calls=CALLS, reasoning="hm", reasoning_details=[{"a": 1}])
        store.append_message("s", "tool", "done", tool_name="terminal", tool_call_id="c1")
        store.append_message("s", "assistant", "ready", finish_reason="stop", reasoning_content="")
        before = store.get_messages_as_conversation("s")
        store.replace_messages("s", before)
        assert store.get_messages_as_conversation("s") == before

    def test_an_invalid_message_leaves_the_old_transcript(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "old")
        messages: list[dict[str, object]] = [{"role": "user", "content": "new"}, {"role": "user", "content": object()}]
        with pytest.raises(InvalidValue):
            store.replace_messages("s", messages)
        assert contents(store.get_messages("s")) == ["old"]

    def test_an_iterable_that_fails_leaves_the_old_transcript(self, store: SessionDBProvider) -> None:
        def failing() -> Iterator[dict[str, str]]:
            yield {"role": "user", "content": "new"}
            raise RuntimeError("the source broke")

        start(store, "s")
        say(store, "s", "old")
        with pytest.raises(RuntimeError, match="the source broke"):
            store.replace_messages("s", failing())
        assert contents(store.get_messages("s")) == ["old"]

    @pytest.mark.parametrize("messages", [[], [{"role": "user", "content": "x"}]])
    def test_unknown_session_is_an_error(self, store: SessionDBProvider, messages: list[dict[str, str]]) -> None:
        with pytest.raises(UnknownSession):
            store.replace_messages("nobody", messages)

    def test_order_by_activity_follows_the_new_times(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "replaced", "other", started_at=100.0)
        store.append_message("replaced", "user", "new", timestamp=900.0)
        store.append_message("other", "user", "middle", timestamp=500.0)
        store.replace_messages("replaced", [{"role": "user", "content": "old", "timestamp": 200.0}])
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["other", "replaced"]


class TestClear:
    def test_takes_all_messages_and_keeps_the_session(self, store: SessionDBProvider) -> None:
        start(store, "s", model="m")
        talk(store, "s", 2)
        assert store.clear_messages("s")
        assert (store.get_messages("s"), session_of(store, "s")["model"]) == ([], "m")

    def test_zeroes_what_was_counted(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_message("s", "assistant", "x", tool_calls=CALLS)
        store.clear_messages("s")
        row = session_of(store, "s")
        assert (row["message_count"], row["tool_call_count"], store.get_session_tools("s")) == (0, 0, {})

    def test_takes_the_preview_away(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "secret")
        store.clear_messages("s")
        assert column(store.list_sessions_rich(), "preview") == [""]

    def test_last_activity_is_the_start_again(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        clock.advance(50)
        say(store, "s", "x")
        store.clear_messages("s")
        assert session_of(store, "s")["last_active"] == NOW

    def test_order_by_activity_forgets_it_too(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "cleared")
        clock.advance(1)
        start(store, "other")
        clock.advance(1)
        say(store, "cleared", "x")
        store.clear_messages("cleared")
        assert ids(store.list_sessions_rich(order_by_last_active=True)) == ["other", "cleared"]

    def test_unknown_session_is_false(self, store: SessionDBProvider) -> None:
        assert not store.clear_messages("nobody")


class TestGet:
    def test_unknown_session_is_empty(self, store: SessionDBProvider) -> None:
        assert store.get_messages("nobody") == []

    def test_sessions_do_not_mix(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        for n in range(3):
            say(store, "a", f"a{n}")
            say(store, "b", f"b{n}")
        assert contents(store.get_messages("a")) == ["a0", "a1", "a2"]

    def test_row_has_every_documented_column(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "x")
        assert set(only_message(store, "s")) >= {
            "id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp",
            "token_count", "finish_reason", "reasoning", "reasoning_content", "reasoning_details",
            "codex_reasoning_items", "codex_message_items", "platform_message_id", "observed", "active", "uid",
        }  # fmt: skip

    def test_inactive_messages_are_left_out(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", talk(store, "s", 2)[2])
        assert contents(store.get_messages("s")) == ["question 0", "answer 0"]

    def test_inactive_messages_come_when_asked_for(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.rewind_to_message("s", talk(store, "s", 2)[2])
        assert column(store.get_messages("s", include_inactive=True), "active") == [1, 1, 0, 0]

    def test_page_forwards(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = talk(store, "s", 3)
        assert ids(store.get_messages("s", after_id=found[1], limit=2)) == found[2:4]

    def test_page_backwards_is_in_order(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = talk(store, "s", 3)
        assert ids(store.get_messages("s", before_id=found[4], limit=2)) == found[2:4]

    def test_first_of_all(self, store: SessionDBProvider) -> None:
        start(store, "s")
        found = talk(store, "s", 3)
        assert ids(store.get_messages("s", limit=2)) == found[:2]
