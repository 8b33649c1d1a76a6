"""Two strict validators of the messages for a model: one like OpenAI's endpoint, one like Anthropic's.

Each returns what it would refuse; an empty list means that everything is accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def openai_flaws(messages: Sequence[Message]) -> list[str]:
    """The errors of OpenAI's chat completions: fields, contents, results that do not follow their calls."""
    flaws: list[str] = []
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        where = f"message {place} ({message.get('role')})"
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in open_calls:
                flaws.append(f"{where} belongs to no call of the message before: {message.get('tool_call_id')!r}")
            else:
                open_calls.remove(message["tool_call_id"])
            flaws += _extra(message, {"role", "content", "tool_call_id"}, where)
            flaws += _text_flaws(message.get("content"), where)
            continue
        if open_calls:
            flaws.append(f"{where} comes before the results of {open_calls}")
            open_calls = []
        match message.get("role"):
            case "system":
                flaws += _extra(message, {"role", "content"}, where) + _text_flaws(message.get("content"), where)
            case "user":
                flaws += _extra(message, {"role", "content"}, where) + _content_flaws(message.get("content"), where)
            case "assistant":
                flaws += _extra(message, {"role", "content", "tool_calls"}, where)
                if "tool_calls" in message:
                    open_calls = [str(call.get("id")) for call in message["tool_calls"]]
                    flaws += _call_flaws(message["tool_calls"], where)
                if message.get("content") is not None or "tool_calls" not in message:
                    flaws += _text_flaws(message.get("content"), where)
            case other:
                flaws.append(f"{where} has the unknown role {other!r}")
    if open_calls:
        flaws.append(f"the conversation ends before the results of {open_calls}")
    return flaws + _encoding_flaws(messages)


def anthropic_flaws(messages: Sequence[Message]) -> list[str]:
    """The errors of Anthropic's endpoint after converting messages to blocks: turns, ids, empty blocks."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    flaws: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] == "system":
            if place:
                flaws.append(f"message {place} is a system message in the middle")
            continue
        role, blocks = _blocks(message)
        is_result = message["role"] == "tool"
        # Results and the user's text after them are one turn; any other messages of the same side must be one message.
        if turns and turns[-1][0] == role == "user" and _is_result(turns[-1][1][-1]):
            turns[-1][1].extend(blocks)
        elif turns and turns[-1][0] == role:
            flaws.append(f"message {place}: {role} speaks twice in a row")
        else:
            turns.append((role, blocks))
        if is_result and not any(_is_call(block) for _, others in turns[:-1] for block in others):
            flaws.append(f"message {place} is a result without any call before it")
    if turns and turns[0][0] != "user":
        flaws.append("the first message is not the person's")
    return flaws + _turn_flaws(turns) + _encoding_flaws(messages)


def flaws_of(messages: Sequence[Message]) -> list[str]:
    """The errors of both."""
    return openai_flaws(messages) + anthropic_flaws(messages)


def _turn_flaws(turns: Sequence[tuple[str, list[dict[str, Any]]]]) -> list[str]:
    flaws: list[str] = []
    seen: set[str] = set()
    wanted: list[str] = []
    for number, (role, blocks) in enumerate(turns):
        results = [block["tool_use_id"] for block in blocks if _is_result(block)]
        if sorted(results) != sorted(wanted):
            flaws.append(f"turn {number} has the results {results} for the calls {wanted}")
        if results and not all(_is_result(block) for block in blocks[: len(results)]):
            flaws.append(f"turn {number} says something before its results")
        wanted = [block["id"] for block in blocks if _is_call(block)]
        flaws += [f"turn {number} uses the id {each} again" for each in wanted if each in seen]
        flaws += [f"turn {number} has the id {each!r}" for each in wanted if not NAME.fullmatch(each)]
        seen |= set(wanted)
        if len(set(wanted)) != len(wanted):
            flaws.append(f"turn {number} uses an id twice: {wanted}")
        flaws += [f"turn {number} ({role}) has an empty text" for block in blocks if not block.get("text", "x").strip()]
        flaws += [
            f"turn {number} calls with something that is no object"
            for block in blocks
            if _is_call(block) and not isinstance(block["input"], dict)
        ]
        if not blocks:
            flaws.append(f"turn {number} ({role}) is empty")
    if wanted:
        flaws.append(f"the conversation ends before the results of {wanted}")
    return flaws


def _blocks(message: Message) -> tuple[str, list[dict[str, Any]]]:
    content = message.get("content")
    if message["role"] == "tool":
        return "user", [{"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "text": content or ""}]
    blocks: list[dict[str, Any]] = []
    if isinstance(content, list):
        blocks += content
    elif content is not None:
        blocks.append({"type": "text", "text": content})
    for call in message.get("tool_calls") or ():
        function = call["function"]
        blocks.append(
            {"type": "tool_use", "id": call["id"], "name": function["name"], "input": _parsed(function["arguments"])}
        )
    return str(message["role"]), blocks


def _is_call(block: Mapping[str, Any]) -> bool:
    return bool(block["type"] == "tool_use")


def _is_result(block: Mapping[str, Any]) -> bool:
    return bool(block["type"] == "tool_result")


def _call_flaws(calls: Any, where: str) -> list[str]:
    if not isinstance(calls, list) or not calls:
        return [f"{where} has tool_calls that are no list of calls"]
    flaws = []
    ids = [call.get("id") for call in calls]
    if len(set(ids)) != len(ids):
        flaws.append(f"{where} has the same id for two calls: {ids}")
    for call in calls:
        if set(call) != {"id", "type", "function"} or call["type"] != "function":
            flaws.append(f"{where} has a call of another form: {sorted(call)}")
            continue
        function = call["function"]
        if set(function) != {"name", "arguments"} or not NAME.fullmatch(str(function["name"])):
            flaws.append(f"{where} calls a tool of the name {function.get('name')!r}")
        if not isinstance(function["arguments"], str) or _parsed(function["arguments"]) is None:
            flaws.append(f"{where} has arguments that are not JSON: {function['arguments']!r}")
        if not isinstance(call["id"], str) or not call["id"]:
            flaws.append(f"{where} has a call without an id")
    return flaws


def _parsed(arguments: Any) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(arguments, parse_constant=refuse)
    except (TypeError, ValueError):
        return None


def _content_flaws(content: Any, where: str) -> list[str]:
    if not isinstance(content, list):
        return _text_flaws(content, where)
    flaws = [] if content else [f"{where} has no parts"]
    for part in content:
        if part.get("type") == "text":
            flaws += _text_flaws(part.get("text"), where)
        elif part.get("type") != "image_url" or not isinstance(part.get("image_url", {}).get("url"), str):
            flaws.append(f"{where} has a part that is neither text nor image: {part}")
    return flaws


def _text_flaws(text: Any, where: str) -> list[str]:
    if not isinstance(text, str):
        return [f"{where} has {type(text).__name__} instead of text"]
    return [] if text.strip() else [f"{where} has an empty content"]


def _extra(message: Message, allowed: set[str], where: str) -> list[str]:
    return [f"{where} has the unknown field {name!r}" for name in sorted(set(message) - allowed)]


def _encoding_flaws(messages: Sequence[Message]) -> list[str]:
    try:
        encoded = json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()
    except (UnicodeEncodeError, ValueError) as error:
        return [f"this cannot be sent: {error}"]
    return ["there is a NUL in it"] if b"\\u0000" in encoded.replace(b"\\\\u0000", b"") else []
