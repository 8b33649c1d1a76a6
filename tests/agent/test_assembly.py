"""Building a reply from the pieces and formats that endpoints send."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from hermes.agent.models.http.reply_builder import ReplyBuilder, read_usage
from hermes.agent.models.model import ReasoningDelta, Reply, TextDelta, ToolCall, Usage


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return delta(tool_calls=list(fragments))


def fragment(index: int | None, name: str = "", arguments: Any = "", call_id: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"function": {"name": name, "arguments": arguments} if name else {"arguments": arguments}}
    if index is not None:
        made["index"] = index
    if call_id:
        made["id"] = call_id
    return made


def build(*chunks: dict[str, Any]) -> Reply:
    assembly = ReplyBuilder()
    for chunk in chunks:
        list(assembly.take(chunk))
    return assembly.reply()


class TestText:
    def test_pieces_are_yielded_as_received(self) -> None:
        assembly = ReplyBuilder()
        assert list(assembly.take(delta(content="Hel"))) == [TextDelta("Hel")]
        assert list(assembly.take(delta(content="lo"))) == [TextDelta("lo")]
        assert assembly.reply().text == "Hello"

    def test_character_split_over_two_pieces_is_joined(self) -> None:
        assembly = ReplyBuilder()
        assert list(assembly.take(delta(content="a\ud83d"))) == [TextDelta("a")]
        assert list(assembly.take(delta(content="\ude00b"))) == [TextDelta("😀b")]
        assert list(assembly.take(delta(content="\ud83d"))) == []
        assert list(assembly.finish()) == [TextDelta("\ud83d")]

    @pytest.mark.parametrize("content", [None, "", [], {}, 7])
    def test_empty_content_yields_no_piece(self, content: Any) -> None:
        assembly = ReplyBuilder()
        assert list(assembly.take(delta(role="assistant", content=content))) == []
        assert not assembly.is_visible

    def test_content_in_parts_is_text(self) -> None:
        assert build(delta(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])).text == "ab"

    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
    def test_reasoning_is_separated_from_text(self, field: str) -> None:
        assembly = ReplyBuilder()
        assert list(assembly.take(delta(**{field: "hmm"}))) == [ReasoningDelta("hmm")]
        assert (assembly.reply().text, assembly.reply().reasoning) == ("", "hmm")

    def test_reasoning_under_two_names_is_taken_once(self) -> None:
        assert build(delta(reasoning="hmm", reasoning_content="hmm")).reasoning == "hmm"

    def test_refusal_is_taken_as_text(self) -> None:
        assert build(delta(content=None, refusal="I will not.")).text == "I will not."

    def test_answer_that_is_not_streamed_is_read(self) -> None:
        whole = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
        assert build(whole) == Reply("x", finish_reason="stop", model="m")

    def test_message_next_to_the_last_delta_is_not_repeated(self) -> None:
        last = {"choices": [{"delta": {}, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
        assert build(delta(content="Hello"), last).text == "Hello"

    @pytest.mark.parametrize(
        "chunk", [{}, {"choices": None}, {"choices": [None]}, {"choices": [{"delta": None}]}, {"type": "ping"}]
    )
    def test_malformed_chunks_change_nothing(self, chunk: dict[str, Any]) -> None:
        assert build(chunk) == Reply("")

    def test_reply_is_finished_after_a_finish_reason(self) -> None:
        assembly = ReplyBuilder()
        list(assembly.take(delta(content="x")))
        assert not assembly.is_finished
        list(assembly.take(delta("length")))
        assert assembly.is_finished
        assert assembly.reply().finish_reason == "length"


class TestToolCalls:
    def test_arguments_in_pieces_are_joined(self) -> None:
        reply = build(
            calls(fragment(0, "search", "", "c1")),
            calls(fragment(0, arguments='{"q"')),
            calls(fragment(0, arguments=": 1}")),
        )
        assert reply.tool_calls == (ToolCall("c1", "search", '{"q": 1}'),)

    def test_mixed_pieces_of_several_calls_are_sorted(self) -> None:
        reply = build(
            calls(fragment(0, "a", "{", "c1"), fragment(1, "b", "[", "c2")),
            calls(fragment(1, arguments="]"), fragment(0, arguments="}")),
        )
        assert reply.tool_calls == (ToolCall("c1", "a", "{}"), ToolCall("c2", "b", "[]"))

    def test_without_an_index_a_name_begins_a_new_call(self) -> None:
        reply = build(calls(fragment(None, "a", "1"), fragment(None, "b", "2")), calls(fragment(None, arguments="3")))
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [("a", "1"), ("b", "23")]

    def test_without_an_index_the_id_identifies_the_call(self) -> None:
        reply = build(
            calls(fragment(None, "a", "1", "c1")),
            calls(fragment(None, "b", "2", "c2")),
            calls(fragment(None, arguments="3", call_id="c1")),
        )
        assert reply.tool_calls == (ToolCall("c1", "a", "13"), ToolCall("c2", "b", "2"))

    def test_calls_with_the_same_index_are_separated_by_id(self) -> None:
        reply = build(
            calls(fragment(0, "a", "1", "c1")), calls(fragment(0, "b", "2", "c2")), calls(fragment(0, arguments="3"))
        )
        assert reply.tool_calls == (ToolCall("c1", "a", "1"), ToolCall("c2", "b", "23"))

    def test_name_and_id_in_every_piece_are_one_call(self) -> None:
        reply = build(calls(fragment(0, "a", "1", "c1")), calls(fragment(0, "a", "2", "c1")))
        assert reply.tool_calls == (ToolCall("c1", "a", "12"),)

    def test_changing_id_does_not_split_a_call(self) -> None:
        reply = build(calls(fragment(0, "a", "1", "c1")), calls(fragment(0, arguments="2", call_id="c2")))
        assert reply.tool_calls == (ToolCall("c1", "a", "12"),)

    def test_missing_ids_are_generated_and_unique(self) -> None:
        reply = build(calls(fragment(0, "a"), fragment(1, "b")))
        first, second = (call.id for call in reply.tool_calls)
        assert first != second
        assert re.fullmatch(r"call_[0-9a-f]+", first)

    def test_arguments_given_as_object_become_json(self) -> None:
        assert build(calls(fragment(0, "a", {"q": 1}, "c1"))).tool_calls[0].arguments == '{"q": 1}'

    def test_tool_call_counts_as_begun_but_not_visible(self) -> None:
        assembly = ReplyBuilder()
        list(assembly.take(calls(fragment(0, "a", "", "c1"))))
        assert (assembly.is_begun, assembly.is_visible) == (True, False)


class TestUsage:
    @pytest.mark.parametrize(
        ("given", "usage"),
        [
            ({"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}, Usage(10, 3)),
            (
                {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
                Usage(2, 3, cache_read_tokens=8),
            ),
            (
                {"prompt_tokens": 10, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}},
                Usage(10, 9, reasoning_tokens=7),
            ),
            (
                {
                    "input_tokens": 2,
                    "output_tokens": 3,
                    "cache_read_input_tokens": 8,
                    "cache_creation_input_tokens": 5,
                },
                Usage(2, 3, cache_read_tokens=8, cache_write_tokens=5),
            ),
            (
                {
                    "prompt_tokens": 15,
                    "completion_tokens": 3,
                    "cache_read_input_tokens": 8,
                    "cache_creation_input_tokens": 5,
                },
                Usage(2, 3, cache_read_tokens=8, cache_write_tokens=5),
            ),
            (
                {
                    "prompt_tokens": 9,
                    "completion_tokens": 1,
                    "prompt_cache_hit_tokens": 6,
                    "prompt_cache_miss_tokens": 3,
                },
                Usage(3, 1, cache_read_tokens=6),
            ),
            (
                {"input_tokens": 10, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 8}},
                Usage(2, 3, cache_read_tokens=8),
            ),
            (
                {"prompt_tokens": 4, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}},
                Usage(0, 1, cache_read_tokens=9),
            ),
            (
                {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": None, "cost": 0.0012},
                Usage(10, 3, cost_usd=0.0012),
            ),
            ({"prompt_tokens": "many", "completion_tokens": -3}, Usage(0, 0)),
            ({"prompt_tokens": math.inf, "completion_tokens": math.nan, "cost": math.inf}, Usage(0, 0)),
            ({"prompt_tokens": 10**400, "completion_tokens": 2, "cost": 10**400}, Usage(0, 2)),
            ({"prompt_tokens": 1, "completion_tokens": 2, "cost": -5}, Usage(1, 2)),
            ({}, None),
            (None, None),
            ([1], None),
        ],
    )
    def test_every_usage_format_counts_each_token_once(self, given: Any, usage: Usage | None) -> None:
        assert read_usage(given) == usage

    def test_prompt_tokens_include_cached_tokens(self) -> None:
        assert Usage(2, 3, cache_read_tokens=8, cache_write_tokens=5).prompt_tokens == 15

    def test_last_token_count_wins(self) -> None:
        reply = build({"usage": {"prompt_tokens": 1}}, {"usage": {"prompt_tokens": 2}}, {"usage": None})
        assert reply.usage == Usage(2)
