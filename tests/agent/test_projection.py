"""The projection: any stored history becomes messages that every endpoint accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.agent.history.projection import BEGINNING, NO_OUTPUT, UNANSWERED, project
from hermes.agent.history.text_limits import valid_text
from hermes.agent.history.tool_results import LOST, NOT_RUN, UNREADABLE, valid_arguments, valid_name
from tests.support.quickness import is_quick
from tests.support.validators import flaws_of

Row = dict[str, Any]


def user(content: Any) -> Row:
    return {"role": "user", "content": content}


def model(content: Any = None, *calls: Row, **fields: Any) -> Row:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {}), **fields}


def call(call_id: Any = "c1", name: Any = "terminal", arguments: Any = "{}") -> Row:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content: Any = "done", call_id: Any = "c1") -> Row:
    return {"role": "tool", "content": content, "tool_call_id": call_id, "tool_name": "terminal"}


def shapes(*history: Row, with_tools: bool = True) -> list[tuple[Any, ...]]:
    """Project a history, check it, and return each message by role and content."""
    messages = project(history, with_tools=with_tools)
    assert flaws_of(messages) == []
    return [
        (
            each["role"],
            each["content"],
            *([[call["id"] for call in each["tool_calls"]]] if "tool_calls" in each else []),
        )
        for each in messages
    ]


class TestCompleteHistory:
    def test_complete_history_is_unchanged(self) -> None:
        history = [user("list"), model("I look", call()), result("a b"), model("a and b")]
        assert project(history) == [
            {"role": "user", "content": "list"},
            {"role": "assistant", "content": "I look", "tool_calls": [call()]},
            {"role": "tool", "tool_call_id": "c1", "content": "a b"},
            {"role": "assistant", "content": "a and b"},
        ]

    def test_images_of_the_user_are_kept(self) -> None:
        parts = [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}},
        ]
        assert shapes(user(parts)) == [("user", parts)]

    def test_projection_gives_the_same_bytes_every_time(self) -> None:
        history = [user("a"), model(None, call(None), call(None)), user("b")]
        assert json.dumps(project(history)) == json.dumps(project(history))

    def test_projection_grows_only_at_its_end(self) -> None:
        history = [user("a"), model("x", call()), result(), model("y"), user("b"), model(None, call()), result()]
        assert project(history)[:4] == project(history[:4])


class TestResults:
    def test_result_lost_in_a_crash_says_it_may_have_run(self) -> None:
        assert shapes(user("go"), model(None, call())) == [
            ("user", "go"),
            ("assistant", None, ["c1"]),
            ("tool", LOST),
        ]

    def test_one_lost_result_among_others_is_filled_in(self) -> None:
        projected = shapes(user("go"), model(None, call("a"), call("b"), call("c")), result("1", "a"), user("and?"))
        assert projected[2:] == [("tool", "1"), ("tool", LOST), ("tool", LOST), ("user", "and?")]

    def test_call_of_an_interrupted_turn_was_not_run(self) -> None:
        history = [user("go"), model(None, call("a"), call("b")), result("1", "a"), model(finish_reason="interrupted")]
        assert shapes(*history, user("why?"))[2:] == [("tool", "1"), ("tool", NOT_RUN), ("user", "why?")]

    def test_crash_is_not_confused_with_a_later_interruption(self) -> None:
        history = [user("go"), model(None, call()), user("again"), model("w", finish_reason="interrupted")]
        assert ("tool", LOST) in shapes(*history)

    def test_late_result_is_moved_to_its_call(self) -> None:
        projected = shapes(user("go"), model(None, call()), user("meanwhile"), result("late"))
        assert projected == [("user", "go"), ("assistant", None, ["c1"]), ("tool", "late"), ("user", "meanwhile")]

    def test_result_without_a_call_is_left_out(self) -> None:
        assert shapes(user("go"), result("whose?"), model("ok")) == [("user", "go"), ("assistant", "ok")]

    def test_repeated_result_is_given_once(self) -> None:
        assert shapes(user("go"), model(None, call()), result("1"), result("2"))[2:] == [("tool", "1")]

    def test_result_without_an_id_belongs_to_the_call_before_it(self) -> None:
        projected = shapes(user("go"), model(None, call(None), call("")), result("1", None), result("2", ""))
        assert projected[2:] == [("tool", "1"), ("tool", "2")]

    def test_result_of_a_reused_id_belongs_to_its_own_turn(self) -> None:
        projected = shapes(user("a"), model(None, call()), result("1"), user("b"), model(None, call()), result("2"))
        assert projected[1:] == [
            ("assistant", None, ["c1"]),
            ("tool", "1"),
            ("user", "b"),
            ("assistant", None, ["call_1"]),
            ("tool", "2"),
        ]

    def test_lost_result_is_not_taken_from_a_later_call_of_the_same_id(self) -> None:
        projected = shapes(user("a"), model(None, call()), user("b"), model(None, call()), result("2"))
        assert [each[1] for each in projected if each[0] == "tool"] == [LOST, "2"]

    @pytest.mark.parametrize("content", [None, "", " \n", []])
    def test_empty_result_has_a_placeholder(self, content: Any) -> None:
        assert shapes(user("go"), model(None, call()), result(content))[2:] == [("tool", NO_OUTPUT)]


class TestTurns:
    def test_messages_in_a_row_are_joined(self) -> None:
        assert shapes(user("a"), user("b"), user("c")) == [("user", "a\n\nb\n\nc")]

    def test_message_of_a_stopped_turn_is_separated_from_the_next(self) -> None:
        assert shapes(user("a"), model(finish_reason="interrupted"), user("b"), user("c")) == [
            ("user", "a"),
            ("assistant", UNANSWERED),
            ("user", "b\n\nc"),
        ]

    def test_observed_messages_of_a_group_are_joined(self) -> None:
        assert shapes({**user("a"), "observed": True}, {**user("b"), "observed": True}, user("c")) == [
            ("user", "a\n\nb\n\nc")
        ]

    def test_repeated_unanswered_message_is_given_once(self) -> None:
        assert shapes(user("a"), user("a"), user("a")) == [("user", "a")]

    def test_repeated_message_after_an_answer_is_given_twice(self) -> None:
        assert shapes(user("a"), model("x"), user("a")) == [("user", "a"), ("assistant", "x"), ("user", "a")]

    def test_repeated_message_after_an_interruption_is_given_once(self) -> None:
        assert shapes(user("a"), model(finish_reason="interrupted"), user("a")) == [("user", "a")]

    def test_answers_in_a_row_are_joined(self) -> None:
        projected = shapes(user("a"), model("x"), model("y", call()), result())
        assert projected[1] == ("assistant", "x\n\ny", ["c1"])

    def test_projection_begins_with_the_user(self) -> None:
        assert shapes(model("x")) == [("user", BEGINNING), ("assistant", "x")]

    def test_summary_comes_before_the_messages_after_it(self) -> None:
        assert shapes({"role": "system", "content": "in short"}, user("on")) == [("user", "in short\n\non")]

    @pytest.mark.parametrize("content", [None, "", "  \n", [], [{"type": "text", "text": " "}]])
    def test_empty_messages_are_left_out(self, content: Any) -> None:
        assert shapes(user("a"), model(content), user(content), model("x")) == [("user", "a"), ("assistant", "x")]

    def test_other_roles_are_left_out(self) -> None:
        assert shapes(user("a"), {"role": "session_meta", "content": "x"}, model("b"))[1:] == [("assistant", "b")]

    def test_empty_history_gives_no_messages(self) -> None:
        assert project([]) == []


class TestWithoutTools:
    def test_calls_and_results_become_text_without_tools(self) -> None:
        projected = shapes(
            user("go"), model("I look", call(arguments='{"a": 1}')), result("x"), model("x"), with_tools=False
        )
        assert projected == [
            ("user", "go"),
            ("assistant", 'I look\n\n[Called terminal with {"a": 1}]'),
            ("user", "[The tool returned: x]"),
            ("assistant", "x"),
        ]

    def test_equal_results_are_all_given_without_tools(self) -> None:
        projected = shapes(
            user("go"), model(None, call("a"), call("b")), result("x", "a"), result("x", "b"), with_tools=False
        )
        assert projected[2][1] == "[The tool returned: x]\n\n[The tool returned: x]"


class TestText:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("a\x00b", "a\ufffdb"),
            ("a\ud800b", "a\ufffdb"),
            ("\ud83d\ude00", "😀"),
            (
                [{"type": "text", "text": "a"}, "b", {"type": "input_audio", "input_audio": {}}],
                "a\n\nb\n\n[input_audio]",
            ),
            ([{"type": "image_url", "image_url": {"url": ""}}, "b"], "[image_url]\n\nb"),
            ({"text": "a"}, "a"),
            ({"odd": 1}, '{"odd": 1}'),
        ],
    )
    def test_text_is_made_valid(self, content: Any, text: str) -> None:
        assert shapes(user(content), model(content)) == [("user", text), ("assistant", text)]

    @pytest.mark.parametrize(
        ("given", "sent"),
        [
            ('{"a": 1}', '{"a": 1}'),
            ('{ "a":1 }', '{ "a":1 }'),
            ("", "{}"),
            (None, "{}"),
            ({"a": 1}, '{"a": 1}'),
            ("[1]", json.dumps({UNREADABLE: "[1]"})),
            ('{"a": ', json.dumps({UNREADABLE: '{"a": '})),
            ('{"a": NaN}', json.dumps({UNREADABLE: '{"a": NaN}'})),
            ('{"a": "\\ud800"}', '{"a": "\ufffd"}'),
            ('{"a": "\ud800"}', '{"a": "\ufffd"}'),
            ("[" * 10_000, json.dumps({UNREADABLE: "[" * 10_000})),
        ],
    )
    def test_arguments_are_made_an_object(self, given: Any, sent: str) -> None:
        assert valid_arguments(given) == sent

    @pytest.mark.parametrize(
        ("given", "name"), [("a.b c", "a_b_c"), ("", "unknown"), (None, "unknown"), ("é" * 70, "_" * 64), ("ok", "ok")]
    )
    def test_names_are_made_valid(self, given: Any, name: str) -> None:
        assert valid_name(given) == name


TEXTS = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(["a", "b", "", " ", "\x00", "\ud800", "x\n"])
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
PARTS = st.lists(
    TEXTS
    | st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})
    | st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.fixed_dictionaries({"url": TEXTS}) | JSON})
    | JSON,
    max_size=3,
)
CONTENTS = st.none() | TEXTS | PARTS | st.dictionaries(TEXTS, JSON, max_size=2)
IDS = st.none() | st.sampled_from(["c1", "c2", "call_0", "call_1", "", "bad id", "x" * 65]) | TEXTS
CALLS = st.lists(
    st.builds(call, IDS, TEXTS | st.none(), TEXTS | JSON)
    | st.builds(lambda name, arguments: {"name": name, "arguments": arguments}, TEXTS, JSON)
    | JSON,
    max_size=3,
)
FINISH = st.none() | st.sampled_from(["stop", "tool_calls", "interrupted", "cut"])
ROWS = (
    st.builds(user, CONTENTS)
    | st.builds(lambda content, calls, finish: model(content, *calls, finish_reason=finish), CONTENTS, CALLS, FINISH)
    | st.builds(result, CONTENTS, IDS)
    | st.builds(lambda content: {"role": "system", "content": content}, CONTENTS)
    | st.builds(lambda role, content: {"role": role, "content": content}, TEXTS, CONTENTS)
)


def texts_in(content: Any) -> list[str]:
    """The texts of messages, without surrounding whitespace."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, str | dict)]
    return [valid_text(each) for each in texts if isinstance(each, str) and valid_text(each).strip()]


def texts_of_role(messages: list[Any], role: str) -> str:
    contents = [each["content"] for each in messages if each["role"] == role and each["content"]]
    return "\0".join("\0".join(texts_in(content)) for content in contents)


@settings(deadline=None)
@given(st.lists(ROWS, max_size=12), st.booleans())
def test_any_history_is_accepted_by_strict_endpoints(history: list[Row], with_tools: bool) -> None:
    assert flaws_of(project(history, with_tools=with_tools)) == []


@settings(deadline=None)
@given(st.lists(ROWS, max_size=12), st.booleans())
def test_no_text_of_the_user_or_the_model_is_lost(history: list[Row], with_tools: bool) -> None:
    messages = project(history, with_tools=with_tools)
    for row in history:
        if row["role"] in ("user", "assistant"):
            for text in texts_in(row["content"]):
                assert text in texts_of_role(messages, row["role"])


@settings(max_examples=30, deadline=None)
@given(st.lists(ROWS, max_size=12))
def test_projection_does_not_change_the_history(history: list[Row]) -> None:
    before = json.dumps(history)
    project(history)
    assert json.dumps(history) == before


class _Counted(list[Row]):
    """A history that counts how often its messages are read."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)

    def __iter__(self) -> Any:
        for row in super().__iter__():
            self.looks += 1
            yield row


def _lost(number: int) -> Row:
    return model(None, call(f"c{number}"))


def _with_equal_ids(number: int) -> Row:
    return result(call_id="c0") if number else model(None, *[call("c0")] * 400)


def _numbered(number: int) -> Row:
    return model(None, call(f"call_{400 + number}" if number < 400 else None))


@pytest.mark.parametrize("row_at", [_lost, _with_equal_ids, _numbered])
def test_each_message_is_read_a_limited_number_of_times(row_at: Any) -> None:
    history = _Counted(map(row_at, range(800)))
    assert flaws_of(project(history)) == []
    assert history.looks <= 8 * len(history)


def test_ids_that_look_like_generated_ones_cost_no_time() -> None:
    history = [model(None, call(f"call_{4_000 + number}")) for number in range(4_000)]
    history += [model(None, call(None)) for _ in range(4_000)]
    assert is_quick(lambda: project(history))
