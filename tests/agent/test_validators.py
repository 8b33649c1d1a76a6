"""The validators of the tests: each finds the flaws that it knows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.validators import Message, anthropic_flaws, flaws_of, openai_flaws

USER: Message = {"role": "user", "content": "go"}
SYSTEM: Message = {"role": "system", "content": "be brief"}


def call(call_id: Any = "c1", name: str = "terminal", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: dict[str, Any]) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(call_id: str = "c1", content: Any = "done") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def answer(content: Any = "ok") -> Message:
    return {"role": "assistant", "content": content}


def test_valid_conversation_has_no_flaw() -> None:
    both = calling(call("a"), call("b"))
    assert flaws_of([SYSTEM, USER, both, result("b"), result("a"), USER, answer(), USER]) == []


@pytest.mark.parametrize(
    "messages",
    [
        [USER, calling(call())],
        [USER, calling(call()), USER],
        [USER, calling(call()), answer()],
        [USER, result()],
        [USER, calling(call()), result(), result()],
        [USER, calling(call()), result("other")],
        [USER, calling(call(), call()), result(), result()],
        [USER, calling(call(name="a b")), result()],
        [USER, calling(call(arguments="{")), result()],
        [USER, calling(call(arguments='{"a": NaN}')), result()],
        [USER, calling(call(None)), result()],
        [USER, calling()],
        [USER, answer(None)],
        [USER, answer("")],
        [USER, answer(" ")],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": [{"type": "audio"}]}],
        [{"role": "user", "content": 5}],
        [{"role": "person", "content": "go"}],
        [{"role": "user", "content": "go", "timestamp": 1}],
        [{"role": "user", "content": "\ud800"}],
        [{"role": "user", "content": "a\0b"}],
        [USER, calling(call()), result(content="")],
    ],
)
def test_openai_validator_finds_each_flaw(messages: list[Message]) -> None:
    assert openai_flaws(messages)


@pytest.mark.parametrize(
    "messages",
    [
        [answer()],
        [USER, USER],
        [USER, answer(), answer()],
        [USER, SYSTEM],
        [USER, calling(call())],
        [USER, calling(call()), USER],
        [USER, calling(call()), USER, result()],
        [USER, calling(call("a"), call("b")), result("a")],
        [USER, calling(call()), result(), USER, calling(call()), result()],
        [USER, calling(call("a b")), result("a b")],
        [USER, calling(call(arguments="[1]")), result()],
        [USER, result(), answer()],
        [USER, answer(" ")],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": "\ud800"}],
    ],
)
def test_anthropic_validator_finds_each_flaw(messages: list[Message]) -> None:
    assert anthropic_flaws(messages)
